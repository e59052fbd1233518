"""Sign-in is looked at before anything is served: what is not in order is no reason to believe names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dashboard import cli
from dashboard.errors import SignInInvalid
from dashboard.sign_in import find_sign_in

AUTH: dict[str, str] = {
    "redirect_uri": "https://perf.example.org/perf/oauth2callback",
    "cookie_secret": "0123456789abcdef" * 2,
    "client_id": "kernelwatch",
    "client_secret": "s",
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory and a home directory of the test's own."""
    for name in ("here", "home"):
        (tmp_path / name / ".streamlit").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    calls: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr("dashboard.cli.os.execve", lambda _, arguments, told: calls.append((arguments, told)))
    return calls


def write(file: Path, **changes: str | None) -> Path:
    """A file of secrets; a key that is None is left out."""
    values = {key: value for key, value in (AUTH | changes).items() if value is not None}
    lines = ["[auth]", *(f'{key} = "{value}"' for key, value in values.items())]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def usual(place: str = "here") -> Path:
    return Path("..", place, ".streamlit", "secrets.toml")


def serve(*arguments: str) -> Any:
    return CliRunner().invoke(cli.main, ["--base-path", "/perf", *arguments])


def test_the_server_takes_its_secrets_from_the_file_that_was_looked_at(started: list[Any]) -> None:
    write(usual("home"), client_id="at home")
    file = write(usual("here"))

    done = serve()

    assert done.exit_code == 0, done.output
    ((arguments, told),) = started
    assert f"--secrets.files={file.resolve()}" in arguments
    assert "--browser.serverAddress=perf.example.org" in arguments
    assert told["KERNELWATCH_SIGN_IN"] == "1"
    assert (
        "Sign-in through id.example.org; it works at this address alone: https://perf.example.org/perf/"
        in (done.stdout)
    )
    assert not any(AUTH[secret] in " ".join(arguments) for secret in ("cookie_secret",))


def test_a_file_of_other_secrets_asks_for_no_sign_in_and_the_one_at_home_counts(started: list[Any]) -> None:
    usual("here").write_text('[database]\nurl = "x"\n', encoding="utf-8")
    assert find_sign_in(None, port=1, base_path="/perf") is None
    write(usual("home"))
    assert find_sign_in(None, port=1, base_path="/perf") is not None
    usual("home").unlink()

    serve()

    ((arguments, told),) = started
    assert not [argument for argument in arguments if argument.startswith("--secrets")]
    assert told["KERNELWATCH_SIGN_IN"] == "0"


def test_the_port_takes_its_place_in_the_address(tmp_path: Path) -> None:
    file = write(tmp_path / "s.toml", redirect_uri="http://localhost:{port}/oauth2callback")

    found = find_sign_in(file, port=9000, base_path="")

    assert found is not None
    assert (found.address, found.is_readable_on_the_way) == ("http://localhost:9000/", False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({key: None}, rf"\[auth\] needs {key}, ") for key in AUTH),
        ({"client_secret": " "}, r"\[auth\] needs client_secret"),
        ({"cookie_secret": "short"}, "fewer than 32 characters"),
        ({"redirect_uri": "https://perf.example.org/oauth2callback"}, "/perf/oauth2callback behind the host"),
        ({"redirect_uri": "https://perf.example.org/perf/"}, "that is where people come back to"),
        ({"redirect_uri": "perf.example.org/perf/oauth2callback"}, "that is where people come back to"),
        ({"redirect_uri": "https://[perf/perf/oauth2callback"}, "that is where people come back to"),
        ({"server_metadata_url": "id.example.org"}, "is no web address"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_the_file(
    tmp_path: Path, changes: dict[str, str | None], words: str
) -> None:
    file = write(tmp_path / "s.toml", **changes)

    with pytest.raises(SignInInvalid, match=words) as found:
        find_sign_in(file, port=8501, base_path="/perf")
    assert str(file) in str(found.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [("[auth", "cannot be read"), ("auth = 1", "auth is no table"), ("\xff", "cannot be read")],
)
def test_a_file_that_streamlit_would_pass_over_starts_nothing(
    started: list[Any], content: str, words: str
) -> None:
    usual().write_text(content, encoding="latin-1")

    done = serve()

    assert done.exit_code == 2
    assert words in done.output
    assert not started


def test_a_named_file_without_sign_in_starts_nothing_and_read_only_pages_need_none(
    tmp_path: Path, started: list[Any]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text("", encoding="utf-8")
    assert "has no table [auth]" in serve("--secrets", str(file)).output
    assert "give one" in serve("--secrets", str(file), "--read-only").output
    assert not started
    usual().write_text("[auth]", encoding="utf-8")

    assert serve("--read-only").exit_code == 0
    ((_, told),) = started
    assert told["KERNELWATCH_SIGN_IN"] == "0"


def test_sign_in_without_authlib_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.sign_in.importlib.util.find_spec", lambda _name: None)

    with pytest.raises(SignInInvalid, match=r"pip install 'kernelwatch\[dashboard\]'"):
        find_sign_in(write(tmp_path / "s.toml"), port=8501, base_path="/perf")


@pytest.mark.usefixtures("started")
def test_sign_in_keeps_strangers_from_deciding_and_http_is_warned_of(tmp_path: Path) -> None:
    file = write(tmp_path / "s.toml", redirect_uri="http://perf.example.org/perf/oauth2callback")

    done = serve("--address", "0.0.0.0", "--secrets", str(file))  # noqa: S104 - the warning is the point

    assert "can read the store. Put a proxy with a login in front of it.\n" in done.stderr
    assert "whoever listens on the way can decide as the people who sign in" in done.stderr
