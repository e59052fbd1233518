"""What the stand-in for GitHub answers, path by path, made from GitHub's own examples."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from github_description import example

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fake_github import FakeGitHub

BOT = "github-actions[bot]"
REPOSITORY = "example/kernels"


@dataclass(slots=True)
class Reply:
    """An answer on its way. ``file`` is sent as it is and is no JSON."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    file: bytes | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: what stands in its path, its query and its body, and who asks."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    login: str | None


def a_comment(number: int, comment: Mapping[str, Any]) -> dict[str, Any]:
    """A comment as GitHub shows it."""
    shown = example("issue-comment")
    user = dict(shown["user"], login=comment["login"])
    return dict(shown, id=number, body=comment["body"], user=user)


def a_pull(
    number: int, *, sha: str, branch: str = "feature", owner: str = "example", **more: Any
) -> dict[str, Any]:
    """An open pull request."""
    shown = dict(example("pull-request-simple-items")[0], number=number, requested_teams=[], state="open")
    head = dict(shown["head"], sha=sha, ref=branch, label=f"{owner}:{branch}")
    return dict(shown, head=head) | more


def _list_comments(hub: FakeGitHub, asked: Asked) -> Reply:
    issue = int(asked.path["number"])
    found = [a_comment(n, c) for n, c in sorted(hub.comments.items()) if c["issue"] == issue]
    return hub.page(found, f"/repos/{REPOSITORY}/issues/{issue}/comments", asked.query)


def _create_comment(hub: FakeGitHub, asked: Asked) -> Reply:
    if len(asked.body["body"]) > 65_536:
        return Reply(422, {"message": "Validation Failed", "errors": [{"code": "too_long"}]})
    number = hub.say(asked.body["body"], issue=int(asked.path["number"]))
    return Reply(201, a_comment(number, hub.comments[number]))


def _change_comment(hub: FakeGitHub, asked: Asked) -> Reply:
    comment = hub.comments.get(int(asked.path["id"]))
    if comment is None:
        return Reply(404, {"message": "Not Found"})
    comment["body"] = asked.body["body"]
    return Reply(200, a_comment(int(asked.path["id"]), comment))


def _delete_comment(hub: FakeGitHub, asked: Asked) -> Reply:
    return (
        Reply(204) if hub.comments.pop(int(asked.path["id"]), None) else Reply(404, {"message": "Not Found"})
    )


def _react(hub: FakeGitHub, asked: Asked) -> Reply:
    hub.reactions.append((int(asked.path["id"]), asked.body["content"]))
    return Reply(201, dict(example("reaction"), content=asked.body["content"]))


def _user(_hub: FakeGitHub, asked: Asked) -> Reply:
    if asked.login == BOT:  # a workflow's token belongs to nobody
        return Reply(403, {"message": "Resource not accessible by integration"})
    shown = example("private-user-response-with-public-and-private-profile-information")
    return Reply(200, dict(shown, login=asked.login))


def _pulls(hub: FakeGitHub, asked: Asked) -> Reply:
    wanted = asked.query.get("head")
    found = [p for p in hub.pulls.values() if wanted in (None, p["head"]["label"])]
    return hub.page(found, f"/repos/{REPOSITORY}/pulls", asked.query)


def _pull(hub: FakeGitHub, asked: Asked) -> Reply:
    pull = hub.pulls.get(int(asked.path["number"]))
    if pull is None:
        return Reply(404, {"message": "Not Found"})
    whole = dict(example("pull-request"), requested_teams=[], number=pull["number"], state=pull["state"])
    return Reply(
        200, whole | {"head": whole["head"] | {"sha": pull["head"]["sha"], "ref": pull["head"]["ref"]}}
    )


def _list_checks(hub: FakeGitHub, asked: Asked) -> Reply:
    found = [
        c for c in hub.checks.values()
        if c["head_sha"] == asked.path["sha"] and asked.query.get("check_name") in (None, c["name"])
    ]  # fmt: skip
    return Reply(200, {"total_count": len(found), "check_runs": found})


def _create_check(hub: FakeGitHub, asked: Asked) -> Reply:
    number = hub.number()
    shown = dict(example("check-run-example-of-completed-conclusion"), id=number, sent=[])
    hub.checks[number] = shown
    return Reply(201, _merged(shown, asked.body))


def _change_check(hub: FakeGitHub, asked: Asked) -> Reply:
    return Reply(200, _merged(hub.checks[int(asked.path["id"])], asked.body))


def _merged(check: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    output = dict(body.get("output", {}))
    check["sent"] += output.pop("annotations", [])  # GitHub adds annotations, and replaces the rest
    check.update({key: body[key] for key in ("name", "head_sha", "conclusion", "external_id") if key in body})
    check["output"] = check["output"] | output | {"annotations_count": len(check["sent"])}
    return check


def _ref(hub: FakeGitHub, asked: Asked) -> Reply:
    sha = hub.branches.get(asked.path["ref"].removeprefix("heads/"))
    if sha is None:
        return Reply(404, {"message": "Not Found"})
    return Reply(200, example("git-ref") | {"ref": f"refs/{asked.path['ref']}"})


def _create_ref(hub: FakeGitHub, asked: Asked) -> Reply:
    name = asked.body["ref"].removeprefix("refs/heads/")
    if name in hub.branches:
        return Reply(422, {"message": "Reference already exists"})
    hub.branches[name] = asked.body["sha"]
    return Reply(201, example("git-ref") | {"ref": asked.body["ref"]})


def _create_tree(_hub: FakeGitHub, asked: Asked) -> Reply:
    sha = hashlib.sha1(json.dumps(asked.body).encode(), usedforsecurity=False).hexdigest()
    return Reply(201, dict(example("git-tree"), sha=sha))


def _create_commit(_hub: FakeGitHub, asked: Asked) -> Reply:
    sha = hashlib.sha1(json.dumps(asked.body).encode(), usedforsecurity=False).hexdigest()
    return Reply(201, dict(example("git-commit"), sha=sha))


def _file(hub: FakeGitHub, asked: Asked) -> Reply:
    if (asked.query.get("ref", "main"), asked.path["path"]) not in hub.files:
        return Reply(404, {"message": "Not Found"})
    return Reply(200, example("content-file-response-if-content-is-a-file"))


def _put_file(hub: FakeGitHub, asked: Asked) -> Reply:
    if asked.body["branch"] not in hub.branches:
        return Reply(404, {"message": f"Branch {asked.body['branch']} not found"})
    key = (asked.body["branch"], asked.path["path"])
    if key in hub.files and "sha" not in asked.body:
        return Reply(422, {"message": 'Invalid request.\n\n"sha" wasn\'t supplied.'})
    hub.files[key] = base64.b64decode(asked.body["content"])
    return Reply(201, example("file-commit-example-for-creating-a-file"))


def _artifacts(hub: FakeGitHub, asked: Asked) -> Reply:
    run = int(asked.path["id"])
    pattern = example("artifact-paginated")["artifacts"][0]
    listed = [
        dict(pattern, id=1000 * run + i, name=name, size_in_bytes=len(content))
        for i, (name, content) in enumerate(hub.artifacts.get(run, []))
    ]
    return Reply(200, {"total_count": len(listed), "artifacts": listed})


def _artifact(hub: FakeGitHub, asked: Asked) -> Reply:
    run, index = divmod(int(asked.path["id"]), 1000)
    there = hub.url.replace("127.0.0.1", "localhost")
    return Reply(302, headers={"Location": f"{there}/blob/{run}-{index}"})


def _runs(hub: FakeGitHub, asked: Asked) -> Reply:
    found = [run for run in hub.runs if asked.query.get("head_sha") in (None, run["head_sha"])]
    return Reply(200, {"total_count": len(found), "workflow_runs": found})


def _rerun(hub: FakeGitHub, asked: Asked) -> Reply:
    hub.reruns.append(int(asked.path["id"]))
    return Reply(201, {})


def _permission(hub: FakeGitHub, asked: Asked) -> Reply:
    right = hub.rights.get(asked.path["user"], "read")
    return Reply(200, {"permission": right, "role_name": right, "user": None})


def _installation(_hub: FakeGitHub, _asked: Asked) -> Reply:
    return Reply(200, dict(example("installation"), id=42, app_slug="kernelwatch-bot"))


def _installation_token(hub: FakeGitHub, _asked: Asked) -> Reply:
    token = f"ghs_installation{hub.number()}"
    hub.logins[token] = "kernelwatch-bot[bot]"
    return Reply(201, dict(example("installation-token"), token=token))


_R = f"/repos/{REPOSITORY}"
ROUTES: list[tuple[str, re.Pattern[str], Callable[[FakeGitHub, Asked], Reply]]] = [
    (method, re.compile(pattern), handler)
    for method, pattern, handler in (
        ("GET", rf"{_R}/issues/(?P<number>\d+)/comments", _list_comments),
        ("POST", rf"{_R}/issues/(?P<number>\d+)/comments", _create_comment),
        ("PATCH", rf"{_R}/issues/comments/(?P<id>\d+)", _change_comment),
        ("DELETE", rf"{_R}/issues/comments/(?P<id>\d+)", _delete_comment),
        ("POST", rf"{_R}/issues/comments/(?P<id>\d+)/reactions", _react),
        ("GET", "/user", _user),
        ("GET", rf"{_R}/installation", _installation),
        ("POST", r"/app/installations/42/access_tokens", _installation_token),
        ("GET", rf"{_R}/pulls", _pulls),
        ("GET", rf"{_R}/pulls/(?P<number>\d+)", _pull),
        ("GET", rf"{_R}/commits/(?P<sha>[^/]+)/check-runs", _list_checks),
        ("POST", rf"{_R}/check-runs", _create_check),
        ("PATCH", rf"{_R}/check-runs/(?P<id>\d+)", _change_check),
        ("GET", rf"{_R}/git/ref/(?P<ref>.+)", _ref),
        ("POST", rf"{_R}/git/refs", _create_ref),
        ("POST", rf"{_R}/git/trees", _create_tree),
        ("POST", rf"{_R}/git/commits", _create_commit),
        ("GET", rf"{_R}/contents/(?P<path>.+)", _file),
        ("PUT", rf"{_R}/contents/(?P<path>.+)", _put_file),
        ("GET", rf"{_R}/actions/runs/(?P<id>\d+)/artifacts", _artifacts),
        ("GET", rf"{_R}/actions/artifacts/(?P<id>\d+)/zip", _artifact),
        ("GET", rf"{_R}/actions/workflows/(?P<workflow>[^/]+)/runs", _runs),
        ("POST", rf"{_R}/actions/runs/(?P<id>\d+)/rerun", _rerun),
        ("GET", rf"{_R}/collaborators/(?P<user>[^/]+)/permission", _permission),
    )
]
