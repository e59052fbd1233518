"""``dashboard``: serve the pages of a store to a browser."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import click

from dashboard.palette import PRIMARY_COLORS
from dashboard.read_only import READ_ONLY_VARIABLE
from store.database import DEFAULT_URL, STORE_VARIABLE

_APP = Path(__file__).with_name("app.py")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NOTHING_LEAVES = ("--browser.gatherUsageStats=false",)


def streamlit_arguments(*, port: int, address: str, base_path: str, open_browser: bool) -> list[str]:
    """The command line of the server that shows the pages.

    Nothing is sent to anyone, nothing watches the source files, and an error page shows no
    source code to whoever reaches it.
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
        # Set for light and dark apart: a colour for both would switch dark off.
        *(f"--theme.{mode}.primaryColor={color}" for mode, color in PRIMARY_COLORS.items()),
        *_NOTHING_LEAVES,
    ]  # fmt: skip


@click.command(context_settings={"show_default": True})
@click.option(
    "--store",
    "url",
    envvar=STORE_VARIABLE,
    default=DEFAULT_URL,
    help="The store to show: a file or a URL.",
)
@click.option("--port", default=8501, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option(
    "--address", default="127.0.0.1", help="Address to listen on; the default stays on this machine."
)
@click.option("--base-path", default="", help="Path below which a proxy serves the pages, such as /perf.")
@click.option("--read-only", is_flag=True, help="Show decisions about changes, and take none.")
@click.option("--open", "open_browser", is_flag=True, help="Open the pages in the browser of this machine.")
def main(url: str, port: int, address: str, base_path: str, *, read_only: bool, open_browser: bool) -> None:
    """Serve trends, verdicts and commits of a store as web pages; decide about changes on one of them."""
    if importlib.util.find_spec("streamlit") is None or importlib.util.find_spec("altair") is None:
        raise click.ClickException(
            "the pages need Streamlit and Altair: install them with pip install 'kernelwatch[dashboard]'"
        )
    if address not in _LOOPBACK:
        click.echo(
            f"Listening on {address}: whoever reaches this port can read the store"
            f"{'' if read_only else ' and decide about changes'}. Put a proxy with a login in front of it"
            f"{'' if read_only else ', set up sign-in, or add --read-only'}.",
            err=True,
        )
    arguments = streamlit_arguments(
        port=port, address=address, base_path=base_path, open_browser=open_browser
    )
    click.echo(f"kernelwatch dashboard of {url}: http://{address}:{port}/{base_path.strip('/')}")
    click.echo("Ctrl-C stops it.")
    sys.stdout.flush()
    # The server takes the place of this process, so that signals and exit code are its own.
    os.execve(  # noqa: S606 - a fixed argument list, no shell
        arguments[0], arguments, os.environ | {STORE_VARIABLE: url, READ_ONLY_VARIABLE: str(int(read_only))}
    )
