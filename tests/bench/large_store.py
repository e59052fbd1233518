"""A store of the size that the pages are judged at, written by DuckDB itself within a minute or two.

Every commit of a straight line has one run on each GPU, every run a measurement of each
benchmark with eight windows and a verdict. A few benchmarks step, so that there is news.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import ENVIRONMENT, a_sha
from triage_events import an_event

from alerts.change_points import search
from store.database import Database
from store.records import CacheState, Case, ClockRegime, Quantity, SeriesKey, Timer
from store.triage import save_triage_events
from store.triage_events import Scope

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

GPUS = tuple(f"GPU-{digit * 8}-0c3d-4e2f-9a7b-1c2d3e4f5a6b" for digit in "abc")
REPOSITORY = "github.com/example/kernels"
WINDOWS = 8
_KINDS = (
    "matmul",
    "attention",
    "rms_norm",
    "softmax",
    "topk",
    "scatter",
    "gather",
    "mlp",
    "quantise",
    "copy",
)
_BASE_MS = 0.05
_CONTEXT = (
    '{"gpu.driver": {"value": "580.159.04"}, "gpu.power_limit_w": {"value": 700.0},'
    ' "gpu.power_w": {"value": 78.2}, "gpu.temperature_c": {"value": 33},'
    ' "gpu.sm_clock_mhz": {"value": 345}, "host.name": {"value": "runner-1"}}'
)
_TELEMETRY = (
    '{"power_w": {"value": 231.5}, "temperature_c": {"value": 41}, "memory_clock_mhz": {"value": 3201},'
    ' "phase.loop_ms": {"value": 26.2}, "throttle.power_cap": {"value": 0}}'
)
# A run id and a commit id are made from their numbers, so that no table has to be joined for them.
_MACROS = """
create temp macro run_id_of(c, g) as (
    select concat_ws('-', h[1:8], h[9:12], '4' || h[14:16], '8' || h[18:20], h[21:32])
    from (select md5('run ' || c || ' ' || g) as h)
);
create temp macro sha_of(c) as printf('%040x', c);
create temp macro noise(a, b) as ((hash(a, b) % 2000)::double / 1000 - 1);
create temp macro center_of(c, b, commits) as
    {base} * (1 + b % 40) * (1 + 0.0015 * noise(c, b))
    * (case when b % 17 = 3 and c > commits * 0.6 then 1.04 else 1 end)
    * (case when b % 23 = 5 and c >= commits - 1 then 1.03 else 1 end);
"""
_COMMITS = """
insert into commits
select '{repository}', sha_of(c), case when c > 1 then [sha_of(c - 1)] else [] end, 'Ada Example',
    timestamp '2026-03-02 09:00:00' + to_hours(c::int), timestamp '2026-03-02 09:00:00' + to_hours(c::int),
    'Change number ' || c
from range(1, {commits} + 1) as t(c)
"""
_RUNS = """
insert into runs by name
select run_id_of(c, g) as run_id, '{repository}' as repository, sha_of(c) as commit_sha, false as dirty,
    'main' as base_ref, sha_of(c) as merge_base,
    timestamp '2026-03-02 09:10:00' + to_hours(c::int) + to_minutes(g::int) as started_at,
    timestamp '2026-03-02 09:11:00' + to_hours(c::int) + to_minutes(g::int) as ended_at,
    (from gpus select gpu_uuid where gpus.g = runs.g) as gpu_uuid, 'NVIDIA H200' as gpu_name,
    'cupti' as timer, 'held' as clock_regime, '{environment}' as environment, 8 as passes, 7 as seed,
    ['builtin'] as suites, '0.1.0' as tool_version, 1 as protocol_version, false as interrupted,
    '{context}' as context, [sha_of(c)] as history_tips, [least(c, 50)::integer] as history_lengths,
    timestamp '2026-03-02 09:12:00' + to_hours(c::int) as saved_at
from (select i // {gpus} + 1 as c, i % {gpus} as g from range({commits} * {gpus}) as t(i)) as runs
"""
_MEASUREMENTS = """
insert into measurements by name
select run_id_of(c, m.g) as run_id, m.b::integer as measurement_index, m.series_id, m.benchmark, m.parameters,
    'device_busy' as quantity, 'cold' as cache_state, [m.tag] as tags,
    'suites/' || m.tag || '.py:12' as source, center_of(c, m.b, {commits}) as center_ms,
    center_ms * 0.998 as low_ms, center_ms * 1.002 as high_ms, {windows} as interval_windows,
    'ok' as fold_status, 3.2e-5 as resolution_ms,
    case when (c + m.b) % 19 = 0 then 'B' else 'A' end as tier,
    ['held clocks; 8 windows in 8 processes'] as tier_evidence, 4.2e7 as flops, 3.4e7 as bytes_moved,
    1 as fold_version
from range(1, {commits} + 1) as t(c), series as m order by c, m.g, m.b
"""
_KERNELS = """
insert into kernels by name
select run_id, measurement_index, 0 as kernel_index, benchmark || '_kernel' as name, 1024 as grid_x,
    1 as grid_y, 1 as grid_z, 128 as block_x, 1 as block_y, 1 as block_z, 0 as cluster_x, 0 as cluster_y,
    0 as cluster_z, 40 as registers, 0 as shared_bytes, 1 as launches
from measurements
"""
_VERDICTS = """
insert into run_lists values (left(sha256(''), 16), []);
insert into verdicts by name
select run_id, series_id, benchmark, parameters, quantity, gpu_uuid, timer, cache_state, clock_regime,
    environment, outcome,
    case when outcome = 'UNCHANGED' then 'intervals-overlap' else 'intervals-apart' end as reason,
    'compared with the pool of 20 runs' as message,
    case when outcome = 'UNCHANGED' then 'none' else 'confirmed' end as standing, tier, {windows} as windows,
    center_ms as candidate_center_ms, low_ms as candidate_low_ms, high_ms as candidate_high_ms,
    {windows} as candidate_windows, 'ok' as candidate_status, center_ms / (1 + effect) as baseline_center_ms,
    center_ms / (1 + effect) * 0.998 as baseline_low_ms, center_ms / (1 + effect) * 1.002 as baseline_high_ms,
    160 as baseline_windows, 'ok' as baseline_status, 'pool' as baseline_kind,
    left(sha256(''), 16) as baseline_list,
    effect, effect - 0.004 as effect_low, effect + 0.004 as effect_high,
    0.2 as p_value, 0.4 as q_value, 0.008 as smallest_seen, started_at as judged_at
from (
    select measurements.*, runs.gpu_uuid, runs.timer, runs.clock_regime, runs.environment, runs.started_at,
        case when measurement_index % 23 = 5 and runs.commit_sha >= sha_of({commits} - 1) then 0.03
            else 0.001 * noise(measurement_index, runs.commit_sha) end as effect,
        case when effect > 0.02 then 'REGRESSED' else 'UNCHANGED' end as outcome
    from measurements join runs using (run_id)
) order by judged_at
"""
# Windows are by far the most rows: numbered in their order, they need neither join nor sort.
_WINDOWS = """
insert into windows by name
select run_id_of(c, g) as run_id, b::integer as measurement_index, w::integer as window_index,
    w::integer as pass_index, b::integer as position, 4000 + w as pid,
    timestamp '2026-03-02 09:10:00' + to_hours(c::int) + to_seconds(w::int) as started_at,
    25 as warmup_calls, 26.0 as warmup_ms, 1 as inner_reps, 1 as attempts, '{telemetry}' as telemetry,
    {samples} as n, {samples} as n_kept, center_of(c, b, {commits}) * (1 + 0.001 * noise(w, b)) as median_ms,
    median_ms as mean_ms, median_ms * 0.001 as sd_ms, median_ms * 0.998 as min_ms,
    median_ms * 0.999 as p10_ms, median_ms * 1.001 as p90_ms,
    list_transform(range({samples}), lambda s: median_ms * (0.999 + 0.002 * s / {samples})) as samples_ms,
    list_transform(range({samples}), lambda s: null::varchar) as exclusions, []::double[] as latency_ms,
    []::double[] as sum_ms, []::double[] as copy_ms, []::bigint[] as n_kernels, []::double[] as pause_ms,
    list_transform(range({samples}), lambda s: 1980) as sm_clock_mhz, []::bigint[] as throttle_reasons
from (
    select i % {windows} as w, i // {windows} % {benchmarks} as b,
        i // ({windows} * {benchmarks}) % {gpus} as g, i // ({windows} * {benchmarks} * {gpus}) + 1 as c
    from range({commits} * {gpus} * {benchmarks} * {windows}) as t(i)
)
"""

_RELEASES = """
insert into git_tags
select run_id_of(c, 0), 0, '{repository}', 'v' || c // 50, sha_of(c)
from range(50, {commits}, 50) as t(c)
"""


def fill_large_store(path: Path, *, commits: int, benchmarks: int = 100, samples: int = 20) -> Database:
    """Write the store; a thousand commits take about a minute on two cores."""
    database = Database(path)
    sizes = {
        "commits": commits, "gpus": len(GPUS), "benchmarks": benchmarks, "windows": WINDOWS,
        "samples": samples, "repository": REPOSITORY, "environment": ENVIRONMENT, "context": _CONTEXT,
        "telemetry": _TELEMETRY, "base": _BASE_MS,
    }  # fmt: skip
    with database.writing() as connection:
        _name_series(connection, benchmarks)
        for statement in (_MACROS, _COMMITS, _RUNS, _MEASUREMENTS, _KERNELS, _VERDICTS, _WINDOWS):
            connection.execute(statement.format(**sizes))
    return database


def divide_history(database: Database, *, commits: int) -> None:
    """Give a store what divides histories: a release every fifty commits, its steps, and accepted changes."""
    with database.writing() as connection:
        connection.execute(_MACROS.format(base=_BASE_MS))
        connection.execute(_RELEASES.format(repository=REPOSITORY, commits=commits))
    search(database)
    accepted = sorted({series_of(benchmark, 0).case.benchmark for benchmark in range(3, 60, 17)})
    first_after = a_sha(int(commits * 0.6) + 1)
    save_triage_events(
        database,
        [
            an_event(number=number, scope=Scope(benchmark=name), commit_sha=first_after)
            for number, name in enumerate(accepted)
        ],
    )


def series_of(benchmark: int, gpu: int) -> SeriesKey:
    """The key of a benchmark by its number on a GPU by its number."""
    return SeriesKey(
        case=Case.of(f"{_KINDS[benchmark % len(_KINDS)]}_{benchmark // len(_KINDS)}", {"rows": 1024}),
        quantity=Quantity.DEVICE_BUSY, gpu_uuid=GPUS[gpu], timer=Timer.CUPTI, cache_state=CacheState.COLD,
        clock_regime=ClockRegime.HELD, environment=ENVIRONMENT,
    )  # fmt: skip


def newest_sha(commits: int) -> str:
    """The id of the newest commit."""
    return a_sha(commits)


def _name_series(connection: duckdb.DuckDBPyConnection, benchmarks: int) -> None:
    connection.execute("create temp table gpus (g integer, gpu_uuid varchar)")
    connection.executemany("insert into gpus values (?, ?)", [[g, uuid] for g, uuid in enumerate(GPUS)])
    connection.execute(
        "create temp table series (b integer, g integer, series_id varchar, benchmark varchar,"
        " parameters varchar, tag varchar)"
    )
    connection.executemany(
        "insert into series values (?, ?, ?, ?, ?, ?)",
        [
            [b, g, key.id, key.case.benchmark, key.case.parameters_json, _KINDS[b % len(_KINDS)]]
            for b in range(benchmarks)
            for g in range(len(GPUS))
            for key in [series_of(b, g)]
        ],
    )
