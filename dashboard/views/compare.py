"""Compare: any two commits, branches, GPUs or environments side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import streamlit as st

from dashboard import export, queries, states, url_state
from dashboard.charts import distribution
from dashboard.compare_table import differences_table
from dashboard.comparing import Filters, compare
from dashboard.differences import Direction, mean_effect
from dashboard.errors import UnknownCommit
from dashboard.formatting import count_of, format_effect, format_effect_interval, gpu_label, literal
from dashboard.timeline import is_on_line, main_line
from dashboard.views.drawing import draw
from store import shown
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from alerts.effects import Effect
    from dashboard.comparing import Comparison
    from dashboard.differences import Difference
    from store.records import RunHeader, SeriesPoint

_OFFERED = 60
_ANY = "any"
_ROWS_AT_FIRST = 50
_PICTURE_PX = 900
_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One side: what it is called, what was measured there, and what was chosen of it."""

    name: str
    headers: Sequence[RunHeader]
    points: Sequence[SeriesPoint]
    gpu_uuid: str
    environment: str


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Compare")
    names = _names(headers)
    left, right = st.columns(2)
    with left:
        base = _choose("Base", "base", names, headers, default=_default_base(headers))
    with right:
        candidate = _choose("Candidate", "candidate", names, headers, default=next(iter(names)))
    found = compare(
        base.points,
        candidate.points,
        across_gpus=_ANY not in (base.gpu_uuid, candidate.gpu_uuid),
        across_environments=_ANY not in (base.environment, candidate.environment),
    )
    if not found.differences:
        _show_nothing_in_common(base, candidate)
        return
    filters = _filters(found)
    kept = [item for item in found.differences if filters.keep(item)]
    if not kept:
        st.info("No benchmark passes these filters: widen or clear them.")
        return
    _show_comparison(kept, f"{candidate.name} against {base.name}")
    _show_unpaired(found)


def _names(headers: Sequence[RunHeader]) -> dict[str, str]:
    """What can be chosen: base branches by name, then the commits measured last."""
    branches = dict.fromkeys(header.base_ref for header in headers if header.base_ref)
    names = {branch: f"{branch} (newest run on it)" for branch in branches}
    for header in headers:
        if len(names) >= _OFFERED:
            break
        key = header.run_id if header.commit_sha is None or header.dirty else header.commit_sha
        if key not in names:
            names[key] = _words(header)
    return names


def _words(header: RunHeader) -> str:
    commit = queries.commits(header.repository).get(header.commit_sha or "")
    words = f"{shown.short(header.commit_sha)} {commit.subject if commit else header.repository}"
    return words + (" + uncommitted changes" if header.dirty else "")


def _default_base(headers: Sequence[RunHeader]) -> str:
    """The commit measured before the newest one on the same GPU, else the newest itself."""
    newest = headers[0]
    for header in headers:
        same = header.gpu_uuid == newest.gpu_uuid and header.repository == newest.repository
        if same and header.commit_sha and not header.dirty and header.commit_sha != newest.commit_sha:
            return header.commit_sha
    return newest.commit_sha or newest.run_id


def _choose(
    label: str, name: str, names: Mapping[str, str], headers: Sequence[RunHeader], *, default: str
) -> _Side:
    """The controls of one side; a commit of the URL that is not offered is added to the list."""
    asked = next(iter(url_state.in_url(name)), default)
    key, own = _resolve(asked, headers)
    options = dict(names) if key in names else {key: _words(own[0]), **names}
    chosen = url_state.one(label, name, list(options), default=key, show=options.__getitem__)
    if chosen != key:
        _, own = _resolve(chosen, headers)
    gpus = {header.gpu_uuid: gpu_label(header.gpu_name, header.gpu_uuid) for header in own}
    environments = list(dict.fromkeys(header.environment for header in own))
    first, second = st.columns(2)
    with first:
        gpu = url_state.one(
            "GPU", f"{name}_gpu", [_ANY, *gpus], default=_ANY,
            show=lambda uuid: gpus.get(uuid, "the same on both sides"),
        )  # fmt: skip
    with second:
        environment = url_state.one(
            "Environment", f"{name}_environment", [_ANY, *environments], default=_ANY,
            show=lambda words: "the same on both sides" if words == _ANY else words,
        )  # fmt: skip
    kept = [
        header
        for header in own
        if gpu in (_ANY, header.gpu_uuid) and environment in (_ANY, header.environment)
    ]
    return _Side(
        name=options[chosen],
        headers=kept,
        points=queries.newest_points([header.run_id for header in kept]),
        gpu_uuid=gpu,
        environment=environment,
    )


def _resolve(asked: str, headers: Sequence[RunHeader]) -> tuple[str, Sequence[RunHeader]]:
    """The key and the runs of a base branch, of a commit id or a beginning of it, or of one run.

    Raises:
        UnknownCommit: nothing stored fits, or several commits do.
    """
    on_branch = [header for header in headers if header.base_ref == asked]
    if on_branch:
        return asked, _newest_of_branch(on_branch)
    found = [header for header in queries.headers_of_commit(asked) if not header.dirty]
    shas = sorted({header.commit_sha or "" for header in found})
    if len(shas) == 1:
        return shas[0], found
    if len(shas) > 1:
        raise UnknownCommit(
            f"{asked} is the beginning of several commits: {', '.join(shas)}; use more digits"
        )
    run = queries.headers([asked])
    if run:
        return asked, run
    raise UnknownCommit(
        f"nothing stored is called {asked}: give a measured commit, a run or a branch that runs are judged "
        f"against, or measure it with 'collect --commit {asked}'"
    )


def _newest_of_branch(headers: Sequence[RunHeader]) -> list[RunHeader]:
    """The newest run of each GPU on the main line of a branch."""
    commits = {
        sha: commit
        for repository in {header.repository for header in headers}
        for sha, commit in queries.commits(repository).items()
    }
    line = main_line(headers, commits)
    newest: dict[str, RunHeader] = {}
    for header in headers:
        if is_on_line(header, line) and header.confirms_run_id is None:
            newest.setdefault(header.gpu_uuid, header)
    return list(newest.values())


def _filters(found: Comparison) -> Filters:
    search, direction, tag, tier = st.columns([3, 3, 3, 2])
    with search:
        text = url_state.text("Benchmark", "q", placeholder="softmax bfloat16")
    with direction:
        directions = url_state.many("Change", "change", [str(d) for d in Direction])
    with tag:
        tags = url_state.many(
            "Tag", "tag", sorted({tag for item in found.differences for tag in item.candidate.tags})
        )
    with tier:
        tiers = url_state.many("Lower tier", "tier", [str(tier) for tier in Tier])
    return Filters(text=text, directions=directions, tags=tags, tiers=tiers)


def _show_comparison(kept: Sequence[Difference], title: str) -> None:
    mean = mean_effect(kept)
    words = _mean_words(mean)
    counts = {direction: sum(item.direction is direction for item in kept) for direction in Direction}
    st.markdown(
        f"{literal(words)}  \nOf {count_of(len(kept), 'benchmark')}: "
        + ", ".join(f"{count:,} {direction}" for direction, count in counts.items() if count)
        + "."
    )
    draw(
        distribution.distribution_chart(kept, mean),
        alt=f"Distribution of {count_of(len(kept), 'change')}. {words} The table below holds every number.",
    )
    draw(
        distribution.largest_chart(kept),
        alt="The largest changes with their intervals. The table below holds every number.",
    )
    st.caption(
        "A change is slower or faster where the two intervals do not overlap. These are no verdicts: "
        "nothing is pooled and nothing confirmed. The dashed line is the geometric mean of the ratios in "
        "its 95 % interval."
    )
    everything = len(kept) <= _ROWS_AT_FIRST or url_state.flag(f"Show all {len(kept):,} rows", "all")
    st.html(differences_table(kept if everything else kept[:_ROWS_AT_FIRST]))
    _offer_files(kept, mean, title=title)


def _mean_words(mean: Effect | None) -> str:
    if mean is None:
        return "Fewer than two benchmarks have a ratio: there is no mean."
    return (
        f"Geometric mean of the ratios: {format_effect(mean.relative)}, 95 % interval "
        f"{format_effect_interval(mean.low, mean.high)} over benchmarks."
    )


def _offer_files(kept: Sequence[Difference], mean: Effect | None, *, title: str) -> None:
    """Downloads; what they hold is made when somebody asks for it."""

    def drawn(form: Literal["png", "svg"]) -> bytes:
        return export.picture(distribution.both_charts(kept, mean, width_px=_PICTURE_PX), form)

    def written() -> str:
        return export.differences_markdown(kept, title=title, mean=_mean_words(mean))

    st.subheader("Take it with you")
    files: dict[str, tuple[str, Callable[[], str | bytes]]] = {
        "CSV": ("text/csv", lambda: export.differences_csv(kept)),
        "Markdown": ("text/markdown", written),
    }
    if export.can_draw():
        files["PNG"] = ("image/png", lambda: drawn("png"))
        files["SVG"] = ("image/svg+xml", lambda: drawn("svg"))
    with st.container(horizontal=True, gap="small"):
        for label, (kind, make) in files.items():
            ending = "md" if label == "Markdown" else label.lower()
            st.download_button(label, make, f"comparison.{ending}", kind, on_click="ignore")
    if not export.can_draw():
        st.caption("PNG and SVG need vl-convert: `pip install 'kernelwatch[alerts]'`.")


def _show_unpaired(found: Comparison) -> None:
    for side, cases in (("base", found.only_base), ("candidate", found.only_candidate)):
        if cases:
            names = ", ".join(case.label for case in cases[:_LISTED])
            more = f" and {len(cases) - _LISTED:,} more" if len(cases) > _LISTED else ""
            st.caption(f"Measured on the {side} alone, or under other conditions: {literal(names)}{more}.")


def _show_nothing_in_common(base: _Side, candidate: _Side) -> None:
    st.warning("The two sides share no benchmark under the same conditions, so that nothing is compared.")
    for label, side in (("Base", base), ("Candidate", candidate)):
        conditions = sorted(
            {
                f"{gpu_label(h.gpu_name, h.gpu_uuid)}, timer {h.timer}, {h.clock_regime} clocks, "
                f"{h.environment}"
                for h in side.headers
            }
        )
        st.markdown(f"{label} was measured on: {literal('; '.join(conditions)) or 'nothing'}")
    st.write(
        "To compare two GPUs or two environments on purpose, choose one on each side. Timer, clocks and "
        "cache state must be the same."
    )


if __name__ == "__main__":
    show()
