-- Runs, what was measured in them, and the commits they measured.
-- The SQL keeps to what DuckLake accepts too: no keys, no sequences, no enumerations.
-- Instants are UTC without a zone; times are milliseconds; JSON is kept as text.

-- One row per `collect` on one commit and one GPU.
create table runs (
    run_id varchar not null,
    repository varchar not null,
    commit_sha varchar,
    dirty boolean not null,
    base_ref varchar,
    merge_base varchar,
    history_note varchar,
    started_at timestamp not null,
    ended_at timestamp not null,
    gpu_uuid varchar not null,
    gpu_name varchar not null,
    timer varchar not null,
    clock_regime varchar not null,
    environment varchar not null,
    passes integer not null,
    seed bigint not null,
    suites varchar[] not null,
    tool_version varchar not null,
    protocol_version integer not null,
    interrupted boolean not null,
    context varchar not null,
    history_tips varchar[] not null,
    history_lengths integer[] not null,
    saved_at timestamp not null
);

-- One row per case of a run, with its folded interval.
create table measurements (
    run_id varchar not null,
    measurement_index integer not null,
    series_id varchar not null,
    benchmark varchar not null,
    parameters varchar not null,
    quantity varchar not null,
    cache_state varchar not null,
    tags varchar[] not null,
    source varchar not null,
    center_ms double,
    low_ms double,
    high_ms double,
    interval_windows integer not null,
    fold_status varchar not null,
    resolution_ms double not null,
    tier varchar not null,
    tier_evidence varchar[] not null,
    flops double,
    bytes_moved double,
    fold_version integer not null
);

-- One row per window: its raw samples, and their statistics so that trends need no samples.
create table windows (
    run_id varchar not null,
    measurement_index integer not null,
    window_index integer not null,
    pass_index integer not null,
    position integer not null,
    pid bigint not null,
    started_at timestamp not null,
    warmup_calls bigint not null,
    warmup_ms double not null,
    inner_reps bigint not null,
    attempts integer not null,
    telemetry varchar not null,
    invalid varchar,
    n integer not null,
    n_kept integer not null,
    median_ms double,
    mean_ms double,
    sd_ms double,
    min_ms double,
    p10_ms double,
    p90_ms double,
    samples_ms double[] not null,
    exclusions varchar[] not null,
    latency_ms double[] not null,
    sum_ms double[] not null,
    copy_ms double[] not null,
    n_kernels bigint[] not null,
    pause_ms double[] not null,
    sm_clock_mhz bigint[] not null,
    throttle_reasons bigint[] not null
);

-- One row per distinct kernel launch of a measurement.
create table kernels (
    run_id varchar not null,
    measurement_index integer not null,
    kernel_index integer not null,
    name varchar not null,
    grid_x bigint not null,
    grid_y bigint not null,
    grid_z bigint not null,
    block_x bigint not null,
    block_y bigint not null,
    block_z bigint not null,
    cluster_x bigint not null,
    cluster_y bigint not null,
    cluster_z bigint not null,
    registers bigint not null,
    shared_bytes bigint not null,
    launches bigint not null
);

-- One row per benchmark, or whole suite file, that gave no number.
create table failures (
    run_id varchar not null,
    failure_index integer not null,
    benchmark varchar,
    parameters varchar,
    stage varchar not null,
    kind varchar not null,
    message varchar not null,
    source varchar not null,
    log varchar not null,
    pass_index integer
);

-- One row per commit of a repository, as git tells it.
create table commits (
    repository varchar not null,
    sha varchar not null,
    parents varchar[] not null,
    author varchar not null,
    authored_at timestamp not null,
    committed_at timestamp not null,
    subject varchar not null
);
