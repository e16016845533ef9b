-- +goose Up

-- The database that the ids of events belong to. After a failover to a standby that lacked
-- commits, or a restore, PostgreSQL is on another timeline or has another identifier, and the
-- sequence would give ids that clients have seen to other events. The first connection of a
-- server finds out and moves the sequence far ahead.
CREATE TABLE lineage (
    one_row           boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    system_identifier bigint NOT NULL,
    timeline          text NOT NULL,             -- the first eight digits of the name of a WAL file
    fence             bigint NOT NULL DEFAULT 0, -- new epochs of sessions are above it: workers of a lost timeline hold lower ones
    noted_at          timestamptz NOT NULL DEFAULT now()
);
