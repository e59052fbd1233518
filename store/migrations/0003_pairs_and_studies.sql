-- Paired runs, and studies of how far the same code lies apart from run to run.

-- The other run of the pair, and which side of it this one is.
alter table runs add column paired_with varchar;
alter table runs add column paired_role varchar;
-- The study that the run was made for.
alter table runs add column aa_study varchar;

-- One row per study: several runs of the same code, compared with one another.
create table aa_studies (
    study_id varchar not null,
    repository varchar not null,
    commit_shas varchar[] not null,
    gpu_uuids varchar[] not null,
    run_ids varchar[] not null,
    left_out varchar[] not null,
    seconds double not null,
    seconds_per_case double not null,
    tool_version varchar not null,
    analysed_at timestamp not null
);

-- One row per series of a study.
create table aa_results (
    study_id varchar not null,
    series_id varchar not null,
    benchmark varchar not null,
    parameters varchar not null,
    quantity varchar not null,
    gpu_uuid varchar not null,
    timer varchar not null,
    cache_state varchar not null,
    clock_regime varchar not null,
    environment varchar not null,
    tier varchar not null,
    runs integer not null,
    center_ms double not null,
    run_sd double not null,
    window_sd double not null,
    pairs integer not null,
    pairs_flagged integer not null,
    smallest_seen double not null
);
