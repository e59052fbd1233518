"""Started as a script by the interpreter of the code under test.

Nothing of kernelwatch is installed there, so this file makes the one package that a worker
needs importable, by its place on disk and without adding a folder to ``sys.path``: neither
``store`` nor anything else that lies beside it can be imported by mistake.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def make_collector_importable() -> None:
    """Register this folder as the package ``collector``."""
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != FOLDER]
    spec = spec_from_file_location(
        "collector", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the collector from {FOLDER}: the installation is damaged")
    package = module_from_spec(spec)
    sys.modules["collector"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    make_collector_importable()
    from collector.worker import main

    main()
