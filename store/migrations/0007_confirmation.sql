-- Runs that measure again what another run had flagged, and what the other session said.

-- The run whose flags this one was made to confirm.
alter table runs add column confirms_run_id varchar;

-- The other session on the same commit that a flag was held against, and what it showed.
alter table verdicts add column second_run_id varchar;
alter table verdicts add column second_outcome varchar;
alter table verdicts add column second_reason varchar;
alter table verdicts add column second_effect double;
alter table verdicts add column second_effect_low double;
alter table verdicts add column second_effect_high double;
