-- Tags mark releases, verdicts say how far a series went since one, and benchmarks may have been renamed.

-- One row per tag on a commit of a run's history, as git told it when the run was measured.
create table git_tags (
    run_id varchar not null,
    tag_index integer not null,
    repository varchar not null,
    name varchar not null,
    commit_sha varchar not null
);

-- The name that the benchmark had before, as its suite declares it.
alter table measurements add column renamed_from varchar;

-- The comparison with the runs up to a release.
alter table verdicts add column drift_since varchar;
alter table verdicts add column drift_effect double;
alter table verdicts add column drift_low double;
alter table verdicts add column drift_high double;
alter table verdicts add column drift_apart boolean;
alter table verdicts add column drift_run_ids varchar[];
