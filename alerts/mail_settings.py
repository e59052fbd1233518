"""The tables ``[mail]`` and ``[webhook]`` of the configuration: who is told, and by which way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from alerts.audience import Audience, Digest, Rule, one_address, owner_audiences
from alerts.errors import MailError
from alerts.policy import Globs  # noqa: TC001 - the reader of tables asks for it at run time
from alerts.smtp import Security, Server, place_of
from store.outbox_records import Channel
from store.records import RecordInvalid, Tier

if TYPE_CHECKING:
    from store.configuration import Configuration

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
EVERYTHING = ("*",)


class HookKind(StrEnum):
    """What a webhook understands."""

    SLACK = "slack"
    TEAMS = "teams"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRule:
    """``[[mail.rule]]``: readers of some benchmarks.

    Attributes:
        benchmarks: globs over names and labels; one that matches is enough.
    """

    benchmarks: Globs
    to: Globs
    digest: Digest = Digest.OFF

    def __post_init__(self) -> None:
        _check_addresses(self.to)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTable:
    """What ``[mail]`` may hold.

    Attributes:
        smtp: HOST:PORT of the server.
        user: whom to log in as; the password comes from the environment alone.
        sender: what the mail is from; the user by default, where that is an address.
        ca_file, owners: paths, relative to the configuration's folder.
        to: who is told of everything.
        after_collect: whether ``collect`` sends what is due by itself.
    """

    smtp: str | None = None
    security: Security = Security.STARTTLS
    user: str | None = None
    sender: str | None = None
    ca_file: str | None = None
    to: tuple[str, ...] = ()
    min_tier: Tier = Tier.A
    flagged: bool = False
    digest: Digest = Digest.OFF
    owners: str | None = None
    after_collect: bool = False
    rule: tuple[MailRule, ...] = ()

    def __post_init__(self) -> None:
        _check_addresses(self.to)
        if self.sender is not None:
            _check_addresses((self.sender,))
        if self.smtp is not None:
            try:
                place_of(self.smtp)
            except ValueError as error:
                raise RecordInvalid(f"smtp: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """``[[webhook.hook]]``: one place to post to.

    Attributes:
        url_variable: the environment variable that holds the URL. The URL itself is a secret.
        signed_by: the environment variable that holds the secret of the signature; JSON alone
            has one, and needs it.
    """

    kind: HookKind
    url_variable: str
    signed_by: str | None = None
    benchmarks: Globs = EVERYTHING
    min_tier: Tier = Tier.A
    digest: Digest = Digest.OFF

    def __post_init__(self) -> None:
        for name in ("url_variable", "signed_by"):
            value = getattr(self, name)
            if value is not None and not _VARIABLE.fullmatch(value):
                raise RecordInvalid(
                    f"{name} is not the name of an environment variable: write one such as "
                    "KERNELWATCH_SLACK_URL, and put the secret itself into that variable"
                )
        if (self.kind is HookKind.JSON) != (self.signed_by is not None):
            raise RecordInvalid(
                "signed_by belongs to a webhook of kind json, which needs it, and to no other"
            )

    @property
    def audience(self) -> Audience:
        """Its readers."""
        return Audience(
            channel=Channel(self.kind.value),
            recipients=(self.url_variable,),
            rules=_rules(self.benchmarks),
            digest=self.digest,
            minimum=self.min_tier,
            signed_by=self.signed_by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTable:
    """What ``[webhook]`` may hold.

    Attributes:
        after_collect: whether ``collect`` posts what is due by itself.
    """

    hook: tuple[Hook, ...] = ()
    after_collect: bool = False


def mail_audiences(table: MailTable, folder: Path) -> list[Audience]:
    """The readers of mail: of everything, by rule, and by the owner file; the same list once.

    Raises:
        MailError: the owner file cannot be read, or a line of it means nothing.
    """
    found = [(table.to, _rules(EVERYTHING), table.digest)] if table.to else []
    found += [(rule.to, _rules(rule.benchmarks), rule.digest) for rule in table.rule]
    if table.owners is not None:
        path = folder / table.owners
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MailError(f"the owner file {path} cannot be read ({error}): check [mail] owners") from error
        found += [(to, rules, table.digest) for to, rules in owner_audiences(text, name=str(path))]
    audiences: dict[str, Audience] = {}
    for to, rules, digest in found:
        one = Audience(
            channel=Channel.EMAIL, recipients=to, rules=rules, digest=digest, minimum=table.min_tier,
            flagged=table.flagged,
        )  # fmt: skip
        if one.name in audiences:
            raise MailError(
                f"the list {one.name} is named twice in [mail]: put its globs into one [[mail.rule]]"
            )
        audiences[one.name] = one
    return list(audiences.values())


def folder_of(configuration: Configuration) -> Path:
    """The folder that paths in the configuration start from."""
    return Path() if configuration.file is None else configuration.file.parent


def server_of(table: MailTable, folder: Path, password: str | None) -> Server | None:
    """The server of ``[mail]``; None where it names none.

    Raises:
        MailError: a log-in would be sent in the clear, or has no password.
    """
    if table.smtp is None:
        return None
    host, port = place_of(table.smtp)
    return Server(
        host=host,
        port=port,
        security=table.security,
        user=table.user,
        password=password,
        ca_file=None if table.ca_file is None else folder / table.ca_file,
    )


def _rules(benchmarks: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(Rule(benchmarks=glob) for glob in benchmarks)


def _check_addresses(words: tuple[str, ...]) -> None:
    for word in words:
        try:
            one_address(word)
        except ValueError as error:
            raise RecordInvalid(f"{error}: write ada@example.org or Ada <ada@example.org>") from None
