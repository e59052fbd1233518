"""People are told after a run where the configuration asks for it, and a failure costs no measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mailserver import Mailbox, listening
from regressed_store import BAD, make_regressed_store

from collector.telling import tell
from store.configuration import Configuration, load_configuration
from store.runs import find_runs

if TYPE_CHECKING:
    from pathlib import Path

    from store.database import Database

TABLE = """
[mail]
smtp = "localhost:{port}"
security = "none"
to = ["team@example.org"]
after_collect = {wanted}
"""


def configuration(folder: Path, port: int, *, wanted: bool) -> Configuration:
    (folder / "kernelwatch.toml").write_text(
        TABLE.format(port=port, wanted=str(wanted).lower()), encoding="utf-8"
    )
    return load_configuration(folder / "kernelwatch.toml", start=folder)


def newest(database: Database) -> str:
    return find_runs(database, limit=1)[0].run_id


def test_mail_goes_out_after_a_run_where_it_is_switched_on(tmp_path: Path) -> None:
    database, mailbox = make_regressed_store(tmp_path / "s.duckdb"), Mailbox()
    with listening(mailbox) as port:
        off = list(tell(newest(database), database.url, configuration(tmp_path, port, wanted=False)))
        on = list(tell(newest(database), database.url, configuration(tmp_path, port, wanted=True)))

    assert off == []
    assert on[-1].startswith("sent 'softmax[rows=1024] is ")
    assert [to for to, _, _ in mailbox.received] == [["team@example.org"]]
    assert find_runs(database, limit=1)[0].commit_sha == f"{BAD:040}"


def test_a_server_that_is_away_is_said_and_raises_nothing(tmp_path: Path) -> None:
    database = make_regressed_store(tmp_path / "s.duckdb")

    said = list(tell(newest(database), database.url, configuration(tmp_path, 1, wanted=True)))

    assert any("waits in the outbox: localhost:1 cannot be talked to" in line for line in said)
