-- Where each series changed its level, as found over its whole history.

-- One row per step of a series; searching the series again replaces its rows.
create table change_points (
    repository varchar not null,
    series_id varchar not null,
    benchmark varchar not null,
    parameters varchar not null,
    quantity varchar not null,
    gpu_uuid varchar not null,
    timer varchar not null,
    cache_state varchar not null,
    clock_regime varchar not null,
    environment varchar not null,
    step_index integer not null,
    commit_before varchar not null,
    commit_sha varchar not null,
    run_id varchar not null,
    size double not null,
    size_low double not null,
    size_high double not null,
    p_value double not null,
    method_version integer not null,
    found_at timestamp not null
);
