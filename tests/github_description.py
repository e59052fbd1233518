"""GitHub's own OpenAPI description as a judge of requests and answers."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from jsonschema import Draft7Validator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE = Path(__file__).parent / "data/github/openapi.json"
# Answers that any path may give, and that the description does not repeat everywhere.
ANYWHERE = {401, 403, 404, 429, 500, 502, 503, 504}


@cache
def description() -> dict[str, Any]:
    """The description with OpenAPI 3.0's ``nullable`` in the words of JSON Schema."""
    whole: dict[str, Any] = _translated(json.loads(FILE.read_text(encoding="utf-8")))
    return whole


def example(name: str) -> Any:
    """A copy of one of GitHub's own examples."""
    raw = json.loads(FILE.read_text(encoding="utf-8"))
    return raw["components"]["examples"][name]["value"]


def _translated(node: Any) -> Any:
    if isinstance(node, list):
        return [_translated(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _translated(value) for key, value in node.items()}
    if inner.get("nullable") is True:
        del inner["nullable"]
        return {"anyOf": [inner, {"type": "null"}]}
    return inner


@cache
def _validator(pointer: str) -> Draft7Validator:
    whole = description()
    return Draft7Validator({"$ref": pointer, "paths": whole["paths"], "components": whole["components"]})


def _problems(pointer: str, value: Any, where: str) -> Iterator[str]:
    for error in _validator(pointer).iter_errors(value):
        yield f"{where}: {error.json_path}: {error.message[:300]}"


@cache
def _templates() -> list[tuple[str, re.Pattern[str]]]:
    # The ref and the path of a file may hold slashes.
    def pattern(template: str) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", template)
        names = [f"(?P<{n}>{'.+' if n in ('ref', 'path') else '[^/]+'})" for n in parts[1::2]]
        literal = [re.escape(text) for text in parts[::2]]
        return re.compile("".join(a + b for a, b in zip(literal, [*names, ""], strict=True)))

    # The longest literal first, so that a file's path does not swallow other paths.
    return sorted(((t, pattern(t)) for t in description()["paths"]), key=lambda pair: -len(pair[0]))


def violations(method: str, target: str, body: Any, status: int | None, answer: Any) -> list[str]:
    """What the description objects to in one exchange; without a status, in its request alone."""
    path, _, query = target.partition("?")
    for template, pattern in _templates():
        match = pattern.fullmatch(path)
        if match and method.lower() in description()["paths"][template]:
            found = list(_in_request(template, method.lower(), match.groupdict(), query, body))
            if status is not None:
                found += _in_answer(template, method.lower(), status, answer)
            return found
    return [f"GitHub knows no {method} {path}"]


def _pointer(template: str, *rest: str) -> str:
    return "#/paths/" + "/".join(part.replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
                                 for part in (template, *rest))  # fmt: skip


def _resolved(node: Mapping[str, Any], at: str) -> tuple[Mapping[str, Any], str]:
    if "$ref" not in node:
        return node, at
    _, _, kind, name = node["$ref"].split("/")
    return description()["components"][kind][name], node["$ref"]


def _in_request(
    template: str, method: str, in_path: Mapping[str, str], query: str, body: Any
) -> Iterator[str]:
    operation = description()["paths"][template][method]
    asked = dict(parse_qsl(query, keep_blank_values=True))
    known = set()
    for index, listed in enumerate(operation.get("parameters", [])):
        parameter, at = _resolved(listed, _pointer(template, method, "parameters", str(index)))
        known.add(parameter["name"])
        given = in_path if parameter["in"] == "path" else asked
        if parameter["name"] in given:
            value = _typed(unquote(given[parameter["name"]]), parameter["schema"])
            yield from _problems(f"{at}/schema", value, f"{method} {template} {parameter['name']}")
        elif parameter.get("required"):
            yield f"{method} {template}: {parameter['name']} is missing"
    yield from (f"{method} {template}: no parameter {name}" for name in asked.keys() - known)
    content = operation.get("requestBody")
    if content is None:
        if body is not None:
            yield f"{method} {template}: takes no body"
    elif body is not None or content.get("required"):
        at = _pointer(template, method, "requestBody", "content", "application~1json", "schema")
        yield from _problems(at, body, f"{method} {template} request")


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    return int(text) if schema.get("type") == "integer" and text.lstrip("-").isdecimal() else text


def _in_answer(template: str, method: str, status: int, answer: Any) -> Iterator[str]:
    responses = description()["paths"][template][method]["responses"]
    if str(status) not in responses:
        if status not in ANYWHERE:
            yield f"{method} {template}: never answers {status}"
        return
    response, at = _resolved(responses[str(status)], _pointer(template, method, "responses", str(status)))
    kinds = response.get("content", {})
    if "application/json" in kinds:
        at = f"{at}/content/application~1json/schema"
        yield from _problems(at, answer, f"{method} {template} answer {status}")
    elif answer is not None:
        yield f"{method} {template}: answers {status} without a body"
