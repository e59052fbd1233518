"""``dashboard``: serve the pages of a store to a browser."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import click

from alerts.configuration import policies_here
from dashboard.errors import SignInInvalid
from dashboard.palette import PRIMARY_COLORS
from dashboard.read_only import READ_ONLY_VARIABLE
from dashboard.sign_in import SIGN_IN_VARIABLE, SignIn, find_sign_in
from store.configuration import CONFIG_VARIABLE
from store.database import DEFAULT_URL, STORE_VARIABLE
from store.errors import ConfigurationInvalid

_APP = Path(__file__).with_name("app.py")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NOTHING_LEAVES = ("--browser.gatherUsageStats=false",)


def streamlit_arguments(
    *, port: int, address: str, base_path: str, open_browser: bool, sign_in: SignIn | None
) -> list[str]:
    """The command line of the server that shows the pages.

    Nothing is sent to anyone but the sign-in service, nothing watches the source files, and an
    error page shows no source code to whoever reaches it.
    """
    return [
        sys.executable, "-m", "dashboard.serving", "run", str(_APP),
        f"--server.port={port}",
        f"--server.address={address}",
        f"--server.baseUrlPath={base_path.strip('/')}",
        f"--server.headless={'false' if open_browser else 'true'}",
        "--server.showEmailPrompt=false",
        "--server.fileWatcherType=none",
        "--server.runOnSave=false",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=none",
        "--client.showErrorLinks=false",
        "--logger.level=warning",
        "--logger.hideWelcomeMessage=true",  # the command says where the pages are
        # Set for light and dark apart: a colour for both would switch dark off.
        *(f"--theme.{mode}.primaryColor={color}" for mode, color in PRIMARY_COLORS.items()),
        *_NOTHING_LEAVES,
        # With its host known, Streamlit asks no server outside what address this machine has.
        *([] if sign_in is None else [
            f"--secrets.files={sign_in.file}", f"--browser.serverAddress={sign_in.host}",
        ]),
    ]  # fmt: skip


@click.command(context_settings={"show_default": True})
@click.option(
    "--store",
    "url",
    envvar=STORE_VARIABLE,
    default=DEFAULT_URL,
    help="The store to show: a file or a URL.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar=CONFIG_VARIABLE,
    help="Configuration that says which tags are releases.  "
    "[default: kernelwatch.toml or pyproject.toml, the nearest upwards]",
)
@click.option("--port", default=8501, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option(
    "--address", default="127.0.0.1", help="Address to listen on; the default stays on this machine."
)
@click.option("--base-path", default="", help="Path below which a proxy serves the pages, such as /perf.")
@click.option(
    "--secrets",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The file that describes sign-in.  [default: .streamlit/secrets.toml, here or at home]",
)
@click.option("--read-only", is_flag=True, help="Show decisions about changes, and take none.")
@click.option("--open", "open_browser", is_flag=True, help="Open the pages in the browser of this machine.")
def main(
    *,
    url: str,
    config: Path | None,
    port: int,
    address: str,
    base_path: str,
    secrets: Path | None,
    read_only: bool,
    open_browser: bool,
) -> None:
    """Serve trends, verdicts and commits of a store as web pages; decide about changes on one of them."""
    if importlib.util.find_spec("streamlit") is None or importlib.util.find_spec("altair") is None:
        raise click.ClickException(
            "the pages need Streamlit and Altair: install them with pip install 'kernelwatch[dashboard]'"
        )
    _check_configuration(config)
    sign_in = _sign_in(secrets, port=port, base_path=base_path, read_only=read_only)
    _warn(address, sign_in, read_only=read_only)
    arguments = streamlit_arguments(
        port=port, address=address, base_path=base_path, open_browser=open_browser, sign_in=sign_in
    )
    click.echo(f"kernelwatch dashboard of {url}: http://{address}:{port}/{base_path.strip('/')}")
    if sign_in is not None:
        click.echo(f"Sign-in through {sign_in.service}; it works at this address alone: {sign_in.address}")
    click.echo("Ctrl-C stops it.")
    sys.stdout.flush()
    told = {
        STORE_VARIABLE: url,
        **({} if config is None else {CONFIG_VARIABLE: str(config)}),
        READ_ONLY_VARIABLE: str(int(read_only)),
        SIGN_IN_VARIABLE: str(int(sign_in is not None)),
    }
    # The server takes the place of this process, so that signals and exit code are its own.
    os.execve(arguments[0], arguments, os.environ | told)  # noqa: S606 - a fixed argument list, no shell


def _check_configuration(config: Path | None) -> None:
    """Refuse to start with a mistake; the pages tell of one that is made later."""
    try:
        policies_here(config)
    except ConfigurationInvalid as error:
        raise click.UsageError(str(error)) from error


def _sign_in(secrets: Path | None, *, port: int, base_path: str, read_only: bool) -> SignIn | None:
    """The sign-in to serve with; pages that take no decisions need none."""
    if read_only and secrets is not None:
        raise click.UsageError("--read-only takes no decisions, and --secrets says who decides: give one")
    if read_only:
        return None
    try:
        return find_sign_in(secrets, port=port, base_path=base_path)
    except SignInInvalid as error:
        raise click.UsageError(str(error)) from error


def _warn(address: str, sign_in: SignIn | None, *, read_only: bool) -> None:
    """Say what strangers can do, and what helps."""
    if address not in _LOOPBACK:
        open_to_all = not read_only and sign_in is None
        click.echo(
            f"Listening on {address}: whoever reaches this port can read the store"
            f"{' and decide about changes' if open_to_all else ''}. Put a proxy with a login in front of it"
            f"{', set up sign-in, or add --read-only' if open_to_all else ''}.",
            err=True,
        )
    if sign_in is not None and sign_in.is_readable_on_the_way:
        click.echo(
            f"{sign_in.redirect_uri} is http: whoever listens on the way can decide as the people who sign "
            "in. Put a proxy with https in front of it.",
            err=True,
        )
