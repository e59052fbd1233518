"""The commands that tell people: who hears what, when, and how often."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run
from click.testing import CliRunner, Result
from mailserver import Mailbox, listening
from regressed_store import BAD, add, make_regressed_store
from triage_events import an_event

from alerts import chart
from alerts.cli import alerts
from store.database import Database
from store.outbox import load_outbox
from store.outbox_records import State
from store.records import Tier
from store.runs import save_run
from store.triage import save_triage_events
from store.triage_events import Action

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.triage_events import TriageEvent

NOW = datetime.now(UTC)
LISTS = """
[mail]
smtp = "{smtp}"
security = "none"
sender = "kernelwatch <bot@example.org>"
to = ["team@example.org"]
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copied, never changed."""
    return make_regressed_store(tmp_path_factory.mktemp("history") / "history.duckdb").path


@pytest.fixture
def store(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(shutil.copy(template, tmp_path / "copy.duckdb"))


@pytest.fixture(autouse=True)
def without_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes a second each time; one test has a picture."""
    if "with_picture" not in request.fixturenames:
        monkeypatch.setattr(chart, "can_draw", lambda: False)


@pytest.fixture
def with_picture() -> None:
    """Let the mail have its picture."""


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def smtp(mailbox: Mailbox) -> Iterator[str]:
    with listening(mailbox) as port:
        yield f"localhost:{port}"


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(alerts, list(arguments), **options)


def mail_it(store: str, smtp: str, *more: str, to: str = "ada@example.org") -> Result:
    return run(
        "email", "--store", store, "--to", to, "--smtp", smtp, "--security", "none", "--from",
        "bot@example.org", *more,
    )  # fmt: skip


def subjects(mailbox: Mailbox) -> list[tuple[str, str]]:
    found = []
    for recipients, content, _ in mailbox.received:
        mail = message_from_bytes(content, _class=EmailMessage, policy=policy.default)
        found.append((", ".join(recipients), str(mail["Subject"])))
    return sorted(found)


@pytest.mark.usefixtures("with_picture")
def test_a_confirmed_regression_is_mailed_once(store: str, smtp: str, mailbox: Mailbox) -> None:
    first, second = mail_it(store, smtp), mail_it(store, smtp)

    assert first.exit_code == second.exit_code == 0, first.output
    assert first.output.startswith("sent 'softmax[rows=1024] is ")
    assert first.output.endswith(" to ada@example.org\n")
    assert "nothing was sent (1 regression told before)" in second.output
    ((_, mail, _),) = mailbox.received
    assert b"Content-Type: image/png" in mail


def test_another_list_hears_of_it_as_well(store: str, smtp: str, mailbox: Mailbox) -> None:
    for to in ("ada@example.org", "bob@example.org"):
        mail_it(store, smtp, to=to)

    assert [to for to, _ in subjects(mailbox)] == ["ada@example.org", "bob@example.org"]


def test_a_regression_that_is_back_is_told_once_after_two_sessions(
    store: str, smtp: str, mailbox: Mailbox
) -> None:
    mail_it(store, smtp)
    add(Database(store), BAD + 1, 0.25)
    once = mail_it(store, smtp)
    add(Database(store), BAD + 2, 0.25)
    twice, again = mail_it(store, smtp), mail_it(store, smtp)

    assert "nothing was sent" in once.output
    assert twice.output.startswith("sent 'softmax[rows=1024] is back at 2")
    assert "nothing was sent" in again.output
    assert len(mailbox.received) == 2


def test_nobody_hears_that_something_is_back_who_never_heard_that_it_was_gone(
    store: str, smtp: str, mailbox: Mailbox
) -> None:
    for commit in (BAD + 1, BAD + 2):
        add(Database(store), commit, 0.25)

    assert "nothing was sent" in mail_it(store, smtp).output
    assert mailbox.received == []


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            an_event(Action.MUTE, commit=BAD, decided_at=NOW, muted_until=NOW.date() + timedelta(days=30)),
            "muted",
        ),
        (an_event(Action.ACCEPT, commit=BAD), "accepted"),
    ],
    ids=["muted", "accepted"],
)
def test_a_decision_about_a_change_keeps_it_quiet(
    store: str, smtp: str, mailbox: Mailbox, event: TriageEvent, why: str
) -> None:
    save_triage_events(Database(store), [event])

    assert f"nothing was sent (1 regression {why}" in mail_it(store, smtp).output
    assert mailbox.received == []


def a_flagged_store(path: Path, **changes: Any) -> str:
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    measurement = a_measurement(**({"median_ms": 0.3} | changes))
    save_run(Database(path), a_run(7, measurements=(measurement,)))
    return str(path)


def test_a_flag_is_mailed_only_when_asked_for(tmp_path: Path, smtp: str, mailbox: Mailbox) -> None:
    store = a_flagged_store(tmp_path / "flagged.duckdb")

    quiet, loud, again = (
        mail_it(store, smtp),
        mail_it(store, smtp, "--flagged"),
        mail_it(store, smtp, "--flagged"),
    )

    assert quiet.exit_code == 0
    assert "nothing was sent (1 regression flagged, not confirmed: --flagged sends" in quiet.output
    assert "slower (not confirmed) at" in loud.output
    assert "told before" in again.output
    assert len(mailbox.received) == 1


def test_a_tier_below_the_minimum_is_not_mailed(tmp_path: Path) -> None:
    store = a_flagged_store(tmp_path / "rough.duckdb", tier=Tier.B)
    arguments = ("email", "--store", store, "--to", "ada@example.org", "--dry-run", "--flagged")

    assert "no regression of tier A or better to tell at 000000000" in run(*arguments).output
    assert "Subject: [kernelwatch] softmax" in run(*arguments, "--min-tier", "B").output


def test_a_dry_run_prints_the_mail_needs_no_server_and_keeps_nothing(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = run("email", "--store", store, "--to", "Ada <ada@example.org>", "--dry-run")

    assert result.exit_code == 0, result.output
    assert "To: Ada <ada@example.org>\n" in result.output
    assert "Subject: [kernelwatch] softmax" in result.output
    assert "Parts: text/plain, text/html\n" in result.output
    assert "1 regressed (1 confirmed)" in result.output
    assert load_outbox(Database(store)) == []
    assert "without a picture: install 'kernelwatch[alerts]'" in caplog.text


def test_mail_is_kept_while_the_server_is_away_and_can_be_sent_later(store: str, mailbox: Mailbox) -> None:
    failed = mail_it(store, "localhost:1")
    key = load_outbox(Database(store))[0].key
    listed, shown = run("outbox", "list", "--store", store), run("outbox", "show", "--store", store, key[:8])
    waits = run("outbox", "send", "--store", store, "--smtp", "localhost:1", "--security", "none")
    resent = run("outbox", "resend", "--store", store, key[:8])
    with listening(mailbox) as port:
        sent = run("outbox", "send", "--store", store, "--smtp", f"localhost:{port}", "--security", "none")

    assert failed.exit_code == 3
    assert "waits in the outbox: localhost:1 cannot be talked to" in failed.stderr
    assert key[:12] in listed.output
    assert "queued" in listed.output
    assert "ada@example.org: queued, 1 attempt, due" in shown.output
    assert "Subject: [kernelwatch] softmax" in shown.output
    assert waits.output.startswith("nothing is due: 1 recipient to wait for, the next at 2")
    assert resent.output == "1 recipient due now: 'alerts outbox send' sends it\n"
    assert (sent.exit_code, len(mailbox.received)) == (0, 1)


def test_a_dropped_message_is_gone_for_good(store: str, smtp: str, mailbox: Mailbox) -> None:
    mail_it(store, "localhost:1")
    key = load_outbox(Database(store))[0].key

    dropped = run("outbox", "drop", "--store", store, key)
    mail_it(store, smtp)

    assert dropped.output == "dropped for 1 recipient\n"
    assert mailbox.received == []
    assert run("outbox", "send", "--store", store).output == "nothing waits\n"


def test_a_message_can_be_sent_again_to_one_reader_who_lost_it(
    store: str, smtp: str, mailbox: Mailbox
) -> None:
    run("email", "--store", store, "--to", "ada@example.org", "--to", "bob@example.org", "--smtp", smtp,
        "--security", "none", "--from", "bot@example.org")  # fmt: skip
    key = load_outbox(Database(store))[0].key

    wrong = run("outbox", "resend", "--store", store, key, "--to", "eve@example.org")
    run("outbox", "resend", "--store", store, key, "--to", "bob@example.org", "--everybody")
    run("outbox", "send", "--store", store, "--smtp", smtp, "--security", "none")

    assert wrong.exit_code == 2
    assert [to for to, _, _ in mailbox.received] == [
        ["ada@example.org", "bob@example.org"],
        ["bob@example.org"],
    ]


def test_a_refused_recipient_ends_with_three_after_the_others_got_theirs(
    store: str, smtp: str, mailbox: Mailbox
) -> None:
    mailbox.refused = frozenset({"bob@example.org"})

    result = mail_it(store, smtp, "--to", "bob@example.org")

    assert result.exit_code == 3
    assert result.stdout.endswith(" to ada@example.org\n")
    assert "for bob@example.org failed: 550 5.1.1 no such mailbox" in result.stderr
    listed = json.loads(
        run("outbox", "list", "--store", store, "--state", "failed", "--format", "json").output
    )
    assert [(who["recipient"], who["state"]) for who in listed[0]["recipients"]] == [
        ("ada@example.org", State.SENT), ("bob@example.org", State.FAILED),
    ]  # fmt: skip


def test_lists_rules_and_owners_come_from_the_configuration(
    store: str, smtp: str, mailbox: Mailbox, tmp_path: Path
) -> None:
    rules = (
        '[[mail.rule]]\nbenchmarks = ["soft*"]\nto = ["soft@example.org"]\n'
        '[[mail.rule]]\nbenchmarks = ["matmul*"]\nto = ["matmul@example.org"]\n'
    )
    owners = "*  rest@example.org\nsoftmax  ada@example.org bob@example.org # both\nmatmul eve@example.org\n"
    (tmp_path / "OWNERS").write_text(owners, encoding="utf-8")
    text = LISTS.format(smtp=smtp) + 'owners = "OWNERS"\n' + rules
    (tmp_path / "kernelwatch.toml").write_text(text, encoding="utf-8")

    result = run("email", "--store", store)

    assert result.exit_code == 0, result.output
    assert [to for to, _ in subjects(mailbox)] == [
        "ada@example.org, bob@example.org", "soft@example.org", "team@example.org",
    ]  # fmt: skip
    assert "matmul@example.org: no confirmed regression" in result.output


def test_a_digest_is_one_mail_a_day_and_waits_for_the_next(
    store: str, smtp: str, mailbox: Mailbox, tmp_path: Path
) -> None:
    text = LISTS.format(smtp=smtp) + 'digest = "daily"\n'
    (tmp_path / "kernelwatch.toml").write_text(text, encoding="utf-8")

    first = run("email", "--store", store)
    for number in range(2):
        add(Database(store), BAD + 1, 0.30, number=number)
    second = run("email", "--store", store)

    assert first.output.startswith("sent 'Digest: 1 regression on 1 commit' to team@example.org")
    assert "team@example.org: the daily digest went out at 20" in second.output
    assert len(mailbox.received) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "ada@example.org"), "--smtp HOST:PORT"),
        (("--to", "ada@example.org", "--smtp", "mail.example.org"), "is not HOST:PORT"),
        (("--to", "ada@example.org", "--smtp", "mail.example.org:99999"), "is not HOST:PORT"),
        (("--to", "ada", "--dry-run"), "is not a mail address"),
        (("--to", "ada@example.org\nBcc: all@example.org", "--dry-run"), "is not a mail address"),
        (("--to", "größe@example.org", "--dry-run"), "is not a mail address"),
        (("--to", "ada@example.org", "--from", "nobody", "--dry-run"), "is not a mail address"),
        (("--dry-run",), "--to ADDR, or in [mail]"),
        (("--to", "ada@example.org", "--dry-run", "--since", "a week"), "is no span such as 12h"),
        (("--to", "ada@example.org", "--dry-run", "--since", "7d", "--run", "1"), "not both"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(store: str, arguments: tuple[str, ...], said: str) -> None:
    result = run("email", "--store", store, *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('to = ["ada"]', "'ada' is not a mail address"),
        ('smtp = "nowhere"', "'nowhere' is not HOST:PORT"),
        ('digest = "hourly"', '"off" or "daily" or "weekly"'),
        ('password = "correct horse"', "KERNELWATCH_SMTP_PASSWORD"),
        ('[[webhook.hook]]\nkind = "slack"\nurl_variable = "https://hooks/T0KEN"', "name of an environment"),
        ('[[webhook.hook]]\nkind = "json"\nurl_variable = "HOOK"', "signed_by belongs to a webhook of kind"),
    ],
)
def test_a_wrong_table_is_a_usage_error_that_shows_no_secret(
    store: str, tmp_path: Path, line: str, said: str
) -> None:
    text = line if line.startswith("[") else f"[mail]\n{line}\n"
    (tmp_path / "kernelwatch.toml").write_text(text, encoding="utf-8")

    command = "webhook" if "webhook" in line else "email"
    result = run(command, "--store", store, "--dry-run")

    assert result.exit_code == 2
    assert said in result.stderr
    assert "T0KEN" not in result.output
    assert "correct horse" not in result.output


def test_a_log_in_without_tls_is_refused_before_the_store_is_read(tmp_path: Path) -> None:
    result = run(
        "email", "--store", str(tmp_path / "none.duckdb"), "--to", "ada@example.org",
        "--smtp", "localhost:25", "--security", "none", "--user", "bot",
        env={"KERNELWATCH_SMTP_PASSWORD": "correct horse"},
    )  # fmt: skip

    assert result.exit_code == 3
    assert "password in the clear" in result.stderr
    assert "correct horse" not in result.output


def test_a_webhook_that_is_not_set_keeps_the_message_and_no_secret_reaches_the_store(
    store: str, tmp_path: Path
) -> None:
    url = "https://localhost:1/services/T0KEN"
    away = run("webhook", "--store", store, "--kind", "slack", "--url-variable", "HOOK", env={"HOOK": url})

    assert away.exit_code == 3
    assert "the webhook in $HOOK cannot be reached" in away.stderr
    assert "T0KEN" not in away.output
    assert not [path for path in tmp_path.iterdir() if path.is_file() and b"T0KEN" in path.read_bytes()]
    dry = run("webhook", "--store", store, "--kind", "teams", "--url-variable", "HOOK", "--dry-run")
    assert json.loads(dry.output)["attachments"][0]["content"]["type"] == "AdaptiveCard"
