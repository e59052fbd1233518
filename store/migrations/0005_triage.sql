-- What people decided about changes. Rows are only ever added: taking one back is a row of its own.

-- One row per decision, note or link; what it is about narrows from a benchmark to a series.
create table triage_events (
    event_id varchar not null,
    repository varchar not null,
    action varchar not null,
    benchmark varchar not null,
    parameters varchar,
    gpu_uuid varchar,
    series_id varchar,
    commit_sha varchar not null,
    body varchar,
    assignee varchar,
    url varchar,
    muted_until date,
    revokes varchar,
    decided_by varchar not null,
    decided_at timestamp not null
);
