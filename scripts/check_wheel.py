"""Check an installed wheel: run by check_wheel.sh inside the environment it was installed into.

The environment holds the extras ``dashboard`` and ``alerts``, and must work without torch.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGES = ("alerts", "collector", "dashboard", "store")
COMMANDS = ("collect", "store", "alerts", "dashboard")
ABSENT = ("torch", "cupti", "pynvml")


def wrong_contents(wheel: Path) -> list[str]:
    """What the wheel lacks, and what it holds that it should not."""
    names = zipfile.ZipFile(wheel).namelist()
    wrong = [f"{package}/py.typed is missing" for package in PACKAGES if f"{package}/py.typed" not in names]
    if not any(name.startswith("store/migrations/") and name.endswith(".sql") for name in names):
        wrong.append("store/migrations/*.sql is missing")
    roots = {name.partition("/")[0] for name in names}
    wrong += [
        f"{root} does not belong into the wheel"
        for root in sorted(roots - set(PACKAGES))
        if not root.endswith(".dist-info")
    ]
    return wrong


def wrong_environment() -> list[str]:
    """What is installed that should not be, and who else claims the names of our packages."""
    wrong = [f"{name} is installed" for name in ABSENT if importlib.util.find_spec(name)]
    owners = importlib.metadata.packages_distributions()
    return wrong + [
        f"the package {package} belongs to {owners.get(package)}"
        for package in PACKAGES
        if owners.get(package) != ["kernelwatch"]
    ]


def wrong_commands() -> list[str]:
    """Commands that do not answer ``--help``, with what they said instead."""
    wrong = []
    for command in COMMANDS:
        path = Path(sys.executable).with_name(command)
        done = subprocess.run([path, "--help"], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0 or "Usage:" not in done.stdout:
            wrong.append(f"{command} --help ended with {done.returncode}:\n{done.stderr}")
    return wrong


def main() -> None:
    """Exit with 1 and one line for each thing that is wrong."""
    wrong = wrong_contents(Path(sys.argv[1])) + wrong_environment() + wrong_commands()
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{Path(sys.argv[1]).name}: contents, environment and commands are as they should be")


if __name__ == "__main__":
    main()
