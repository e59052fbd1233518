-- What is to be told to people, until it was: mails and webhook calls.

-- One row per message to one audience, as it goes over the wire. No password, token or URL is in it.
create table outbox (
    message_key varchar not null,
    kind varchar not null,
    channel varchar not null,
    audience varchar not null,
    subject varchar not null,
    content varchar not null,
    sender varchar not null,
    signed_by varchar,
    queued_at timestamp not null
);

-- One row per message and recipient: how far the delivery is.
create table outbox_recipients (
    message_key varchar not null,
    recipient varchar not null,
    state varchar not null,
    reason varchar not null,
    attempts integer not null,
    uncertain integer not null,
    due_at timestamp not null,
    claim varchar,
    claimed_until timestamp,
    changed_at timestamp not null
);

-- What each message told: a regression of a series that came with a commit, or its recovery.
create table outbox_told (
    message_key varchar not null,
    kind varchar not null,
    repository varchar not null,
    commit_sha varchar not null,
    series_id varchar not null,
    run_id varchar not null
);
