"""Cut the part of GitHub's OpenAPI description that the tests validate against.

The description is `generated/api.github.com.json` of the npm package `@octokit/openapi`, which is
`github/rest-api-description` with its licence (MIT):

    npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
    python scripts/cut_github_description.py package/generated/api.github.com.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "tests/data/github/openapi.json"
REPO = "/repos/{owner}/{repo}"
USED = {
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/user": ("get",),
    f"{REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": ("get",),
    f"{REPO}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{REPO}/actions/runs/{{run_id}}/rerun": ("post",),
    f"{REPO}/actions/workflows/{{workflow_id}}/runs": ("get",),
    f"{REPO}/check-runs": ("post",),
    f"{REPO}/check-runs/{{check_run_id}}": ("patch",),
    f"{REPO}/collaborators/{{username}}/permission": ("get",),
    f"{REPO}/commits/{{ref}}/check-runs": ("get",),
    f"{REPO}/contents/{{path}}": ("get", "put"),
    f"{REPO}/git/commits": ("post",),
    f"{REPO}/git/ref/{{ref}}": ("get",),
    f"{REPO}/git/refs": ("post",),
    f"{REPO}/git/trees": ("post",),
    f"{REPO}/installation": ("get",),
    f"{REPO}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{REPO}/issues/comments/{{comment_id}}": ("patch", "delete"),
    f"{REPO}/issues/comments/{{comment_id}}/reactions": ("post",),
    f"{REPO}/pulls": ("get",),
    f"{REPO}/pulls/{{pull_number}}": ("get",),
}
EXAMPLES = {
    "artifact-paginated",
    "check-run-example-of-completed-conclusion",
    "content-file-response-if-content-is-a-file",
    "file-commit-example-for-creating-a-file",
    "git-commit",
    "git-ref",
    "git-tree",
    "installation",
    "installation-token",
    "issue-comment",
    "private-user-response-with-public-and-private-profile-information",
    "pull-request",
    "pull-request-simple-items",
    "reaction",
    "repository-collaborator-permission-response-if-user-has-admin-permissions",
    "workflow-run-paginated",
}


def cut(description: dict[str, Any]) -> dict[str, Any]:
    """The paths that are used, what they refer to, and no prose."""
    paths: dict[str, Any] = {}
    for path, methods in USED.items():
        whole = description["paths"][path]
        paths[path] = {method: _operation(whole[method]) for method in methods}
    components: dict[str, dict[str, Any]] = {}
    _follow(paths, description["components"], components)
    examples = description["components"]["examples"]
    missing = EXAMPLES - examples.keys()
    if missing:
        sys.exit(f"the description has no example {', '.join(sorted(missing))}")
    return {
        "openapi": description["openapi"],
        "info": description["info"],
        "paths": paths,
        "components": components | {"examples": {name: examples[name] for name in sorted(EXAMPLES)}},
    }


def _operation(whole: dict[str, Any]) -> dict[str, Any]:
    kept = {key: whole[key] for key in ("parameters", "requestBody", "responses") if key in whole}
    pruned: dict[str, Any] = _pruned(kept)
    return pruned


def _pruned(node: Any, *, names: bool = False) -> Any:
    """A copy without descriptions and examples; ``names`` says that the keys are names of properties."""
    if isinstance(node, list):
        return [_pruned(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _pruned(value, names=key in ("properties", "responses", "schemas") and not names)
        for key, value in node.items()
        if names or key not in ("description", "example", "examples", "title", "x-multi-segment")
    }


def _follow(node: Any, source: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
    if isinstance(node, list):
        for item in node:
            _follow(item, source, found)
    elif isinstance(node, dict):
        if isinstance(pointer := node.get("$ref"), str):
            _, _, kind, name = pointer.split("/")
            if name not in found.setdefault(kind, {}):
                found[kind][name] = _pruned(source[kind][name])
                _follow(found[kind][name], source, found)
        for item in node.values():
            _follow(item, source, found)


if __name__ == "__main__":
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TARGET.write_text(
        json.dumps(cut(whole), sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
    print(f"wrote {TARGET}: {TARGET.stat().st_size} bytes")
