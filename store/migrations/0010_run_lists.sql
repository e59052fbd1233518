-- The runs that verdicts rest on, each list once: most verdicts of a run share theirs.

-- One row per list. Its id is made from what it holds, so that a list is the same in every store.
create table run_lists (
    list_id varchar not null,
    run_ids varchar[] not null
);
insert into run_lists
select left(sha256(array_to_string(run_ids, ',')), 16), run_ids
from (
    select baseline_run_ids as run_ids from verdicts
    union
    select drift_run_ids from verdicts where drift_run_ids is not null
);
alter table verdicts add column baseline_list varchar;
alter table verdicts add column drift_list varchar;
update verdicts set
    baseline_list = left(sha256(array_to_string(baseline_run_ids, ',')), 16),
    drift_list = left(sha256(array_to_string(drift_run_ids, ',')), 16);
alter table verdicts drop column baseline_run_ids;
alter table verdicts drop column drift_run_ids;
