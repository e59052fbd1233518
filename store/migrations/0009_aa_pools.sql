-- What an A/A study says of verdicts against a pool, and where its time went.

-- Runs judged against the pool of the others, and how many of them a verdict would have called changed.
alter table aa_results add column pool_runs integer;
alter table aa_results add column pool_flagged integer;
alter table aa_results add column pool_smallest_seen double;
update aa_results set pool_runs = 0, pool_flagged = 0;

-- Seconds of wall time, of all runs together; NULL where nobody looked.
alter table aa_studies add column calls_s double;
alter table aa_studies add column pauses_s double;
alter table aa_studies add column warm_up_s double;
alter table aa_studies add column loop_s double;
alter table aa_studies add column reading_s double;
alter table aa_studies add column setup_s double;
