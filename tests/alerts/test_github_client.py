"""The client: pages, limits, failures, redirects and secrets, over real HTTP."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fake_github import TOKEN, FakeGitHub, Fault, listening
from fake_github_answers import REPOSITORY
from github_description import violations

from alerts.errors import GitHubError, GitHubRefused, GitHubUnsure
from alerts.github.auth import App, Secret, Token, credentials_of
from alerts.github.client import Client
from alerts.github.patience import Patience, limit_pause, retry_after
from alerts.github.place import Place, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMENTS = f"/repos/{REPOSITORY}/issues/7/comments"
NOW = 1_800_000_000.0


@pytest.fixture(name="hub")
def _hub() -> Iterator[FakeGitHub]:
    with listening(FakeGitHub()) as hub:
        yield hub
    assert hub.violations == []


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def now(self) -> float:
        return NOW + sum(self.slept)


def a_client(hub: FakeGitHub, clock: Clock | None = None, **changes: Any) -> Client:
    clock = clock or Clock()
    credentials = changes.pop("credentials", Token(Secret(TOKEN)))
    return Client(
        Place(repository=REPOSITORY, api_url=hub.url), credentials,
        sleep=clock.sleep, now=clock.now, jitter=lambda: 1.0, **changes,
    )  # fmt: skip


def test_a_list_is_read_to_its_last_page(hub: FakeGitHub) -> None:
    hub.page_max = 2
    for number in range(5):
        hub.say(f"comment {number}")

    with a_client(hub) as client:
        bodies = [comment["body"] for comment in client.items(COMMENTS)]

    assert bodies == [f"comment {number}" for number in range(5)]
    assert len(hub.log) == 3


def test_a_page_on_another_server_is_not_followed(hub: FakeGitHub) -> None:
    hub.faults[1] = Fault("answer", 200, {"Link": '<https://evil.example/x>; rel="next"'}, [])

    with a_client(hub) as client, pytest.raises(GitHubError, match=r"lies on evil\.example"):
        list(client.items(COMMENTS))


@pytest.mark.parametrize("kind", ["before", "after", "within"])
def test_what_may_be_asked_twice_is_asked_again_after_a_cut(hub: FakeGitHub, kind: str) -> None:
    hub.say("hello")
    hub.faults = {1: Fault(kind), 2: Fault(kind)}
    clock = Clock()

    with a_client(hub, clock) as client:
        assert [comment["body"] for comment in client.items(COMMENTS)] == ["hello"]

    assert clock.slept == [1.0, 2.0]


@pytest.mark.parametrize("fault", [Fault("before"), Fault("after"), Fault("within"), Fault("answer", 502)])
def test_a_post_whose_answer_is_lost_is_not_repeated(hub: FakeGitHub, fault: Fault) -> None:
    hub.faults[1] = fault

    with a_client(hub) as client, pytest.raises(GitHubUnsure, match="whether it was done is not known"):
        client.create(COMMENTS, {"body": "once"})

    assert len(hub.log) == 1


def test_a_server_that_cannot_be_reached_was_asked_nothing_so_a_post_is_repeated() -> None:
    with listening(FakeGitHub()) as gone:
        pass
    clock = Clock()

    with (
        a_client(gone, clock) as client,
        pytest.raises(GitHubError, match=r"connection failed.*5 times in a row"),
    ):
        client.create(COMMENTS, {"body": "x"})

    assert clock.slept == [1.0, 2.0, 4.0, 8.0]


def test_a_server_that_stays_broken_is_given_up(hub: FakeGitHub) -> None:
    hub.faults = {number: Fault("answer", 503) for number in range(1, 9)}

    with a_client(hub) as client, pytest.raises(GitHubError, match="GitHub answered 503, 5 times in a row"):
        client.get(COMMENTS)

    assert len(hub.log) == 5


def test_retry_after_is_obeyed_even_by_a_post(hub: FakeGitHub) -> None:
    hub.faults[1] = Fault("answer", 429, {"Retry-After": "17"})
    clock = Clock()

    with a_client(hub, clock) as client:
        client.create(COMMENTS, {"body": "x"})

    assert clock.slept == [18.0]
    assert hub.bodies() == ["x"]


def test_a_primary_limit_is_waited_for_until_it_is_lifted(hub: FakeGitHub) -> None:
    lifted = str(int(NOW) + 90)
    hub.faults[1] = Fault("answer", 403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": lifted})
    clock = Clock()

    with a_client(hub, clock) as client:
        client.get(COMMENTS)

    assert clock.slept == [92.0]  # a second for the edges, and the jitter


def test_a_secondary_limit_is_waited_for_a_minute_then_two(hub: FakeGitHub) -> None:
    said = {"message": "You have exceeded a secondary rate limit. Please wait."}
    hub.faults = {1: Fault("answer", 403, body=said), 2: Fault("answer", 403, body=said)}
    clock = Clock()

    with a_client(hub, clock) as client:
        client.get(COMMENTS)

    assert clock.slept == [61.0, 121.0]


def test_a_limit_of_an_hour_is_an_error_at_once(hub: FakeGitHub) -> None:
    hub.faults[1] = Fault(
        "answer", 403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 3600)}
    )
    clock = Clock()

    with a_client(hub, clock) as client, pytest.raises(GitHubError, match="run the command again later"):
        client.get(COMMENTS)

    assert clock.slept == []


def test_a_refusal_says_what_the_token_lacks_and_is_not_repeated(hub: FakeGitHub) -> None:
    hub.forbidden.add("POST /comments")

    with a_client(hub) as client, pytest.raises(GitHubRefused) as caught:
        client.create(COMMENTS, {"body": "x"})

    assert caught.value.status == 403
    assert "Resource not accessible by integration" in str(caught.value)
    assert "it needs contents=write" in str(caught.value)
    assert len(hub.log) == 1


def test_what_is_gone_already_may_be_deleted_again(hub: FakeGitHub) -> None:
    with a_client(hub) as client:
        client.delete(f"/repos/{REPOSITORY}/issues/comments/5")

    assert hub.log == [f"DELETE /repos/{REPOSITORY}/issues/comments/5"]


def test_a_renamed_repository_is_followed_on_the_same_server(hub: FakeGitHub) -> None:
    hub.say("hello")
    hub.faults[1] = Fault("answer", 301, {"Location": COMMENTS})

    with a_client(hub) as client:
        assert len(list(client.items(COMMENTS))) == 1


def test_a_download_follows_to_another_server_without_the_token(hub: FakeGitHub) -> None:
    hub.artifacts[3] = [("run", b"content")]

    with a_client(hub) as client:
        assert client.download(f"/repos/{REPOSITORY}/actions/artifacts/3000/zip", max_bytes=7) == b"content"

    assert hub.tokens_seen == {f"127.0.0.1 Bearer {TOKEN}"}


def test_a_download_beyond_its_bound_is_not_read(hub: FakeGitHub) -> None:
    hub.artifacts[3] = [("run", b"content")]

    with a_client(hub) as client, pytest.raises(GitHubError, match="longer than 6 bytes"):
        client.download(f"/repos/{REPOSITORY}/actions/artifacts/3000/zip", max_bytes=6)


def test_an_answer_that_is_no_json_points_to_the_address(hub: FakeGitHub) -> None:
    hub.artifacts[3] = [("run", b"<html>")]

    with a_client(hub) as client, pytest.raises(GitHubError, match="GITHUB_API_URL"):
        client.get("/blob/3-0")  # a page that is no part of the interface


@pytest.mark.parametrize(
    "url",
    ["http://github.example/api/v3", "https://token@github.example", "ftp://x", "https://", "https://h/?a=b"],
)
def test_an_address_that_would_give_the_token_away_is_refused(url: str) -> None:
    with pytest.raises(GitHubError, match="give the token away"):
        Client(Place(repository=REPOSITORY, api_url=url), Token(Secret(TOKEN)))


def test_an_enterprise_server_is_asked_below_its_own_path() -> None:
    place = place_of(
        {
            "GITHUB_REPOSITORY": "a/b",
            "GITHUB_API_URL": "https://ghe.example/api/v3/",
            "GITHUB_SERVER_URL": "https://ghe.example",
            "GITHUB_RUN_ID": "12",
        }
    )

    assert place.run_url == "https://ghe.example/a/b/actions/runs/12"
    with Client(place, Token(Secret(TOKEN))) as client:
        assert str(client._transport.url("/user")) == "https://ghe.example/api/v3/user"


@pytest.mark.parametrize("name", ["", "kernels", "a/b/c", "../x", "a/..", "a/b?x", "a b/c"])
def test_what_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(GitHubError, match="repository"):
        place_of({"GITHUB_REPOSITORY": name})


@pytest.fixture(name="key", scope="module")
def _key() -> str:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def test_an_app_gets_itself_a_token_for_the_repository_and_uses_it(hub: FakeGitHub, key: str) -> None:
    with a_client(hub, credentials=App("123", Secret(key))) as client:
        client.get("/user")
        client.get("/user")

    assert [entry.rpartition("/")[2] for entry in hub.log] == [
        "installation",
        "access_tokens",
        "user",
        "user",
    ]
    assert sum("ghs_installation" in token for token in hub.tokens_seen) == 1


def test_the_proof_of_an_app_lives_less_than_ten_minutes(key: str) -> None:
    import jwt

    claims = jwt.decode(App("123", Secret(key)).jwt(NOW).word, options={"verify_signature": False})

    assert claims == {"iss": "123", "iat": NOW - 60, "exp": NOW + 540}


def test_an_app_that_is_not_installed_says_so(hub: FakeGitHub, key: str) -> None:
    hub.forbidden.add("GET /installation")

    with (
        a_client(hub, credentials=App("1", Secret(key))) as client,
        pytest.raises(GitHubError, match="installed there"),
    ):
        client.get("/user")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "no GitHub token: set GITHUB_TOKEN"),
        ({"KERNELWATCH_GITHUB_APP_ID": "1"}, "needs both"),
        ({"KERNELWATCH_GITHUB_APP_ID": "1", "KERNELWATCH_GITHUB_APP_KEY": "/nowhere"}, "neither a PEM nor"),
        ({"GITHUB_TOKEN": "ghs_a\nb"}, "characters that no token has"),
    ],
)
def test_missing_credentials_are_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(GitHubError, match=message):
        credentials_of(environment)


def test_a_key_may_lie_in_a_file_and_a_broken_one_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text("-----BEGIN RSA PRIVATE KEY-----\nsecretsecret\n-----END RSA PRIVATE KEY-----\n")

    app = credentials_of({"KERNELWATCH_GITHUB_APP_ID": "1", "KERNELWATCH_GITHUB_APP_KEY": str(file)})

    assert isinstance(app, App)
    with pytest.raises(GitHubError, match="holds no RSA private key") as caught:
        app.jwt(NOW)
    assert "secretsecret" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_the_token_is_in_no_message_log_or_representation(
    hub: FakeGitHub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hub.faults = {
        1: Fault("answer", 422, body={"message": f"no {TOKEN} here", "errors": [{"message": TOKEN}]}),
        2: Fault("answer", 500),
    }

    with a_client(hub, patience=Patience(attempts=1)) as client:
        messages = []
        for _ in range(2):
            with pytest.raises(GitHubError) as caught:
                client.get(COMMENTS)
            messages.append(str(caught.value))
            assert caught.value.__cause__ is None

    assert "422 no *** here: ***" in messages[0]
    assert TOKEN not in "".join([*messages, caplog.text, repr(Token(Secret(TOKEN))), str(Secret(TOKEN))])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("12", 12.0), ("-3", None), ("soon", None), ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0)],
)
def test_retry_after_holds_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_a_plain_refusal_is_no_limit() -> None:
    assert limit_pause(403, {}, "Must have admin rights", attempt=1, now_s=NOW, patience=Patience()) is None


@pytest.mark.parametrize(
    ("asked", "answered", "objection"),
    [
        (("POST", COMMENTS, {"bdy": "x"}), (201, {}), "'body' is a required property"),
        (("GET", f"{COMMENTS}?per_pag=1", None), (200, []), "no parameter per_pag"),
        (("GET", COMMENTS.replace("7", "seven"), None), (200, []), "not of type 'integer'"),
        (("GET", COMMENTS, None), (204, None), "never answers 204"),
        (("GET", COMMENTS, None), (200, [{}]), "'id' is a required property"),
        (("GET", "/nowhere", None), (200, {}), "knows no GET"),
    ],
)
def test_the_description_objects_to_what_is_not_github(
    asked: tuple[str, str, Any], answered: tuple[int, Any], objection: str
) -> None:
    assert objection in " ".join(violations(*asked, *answered))
