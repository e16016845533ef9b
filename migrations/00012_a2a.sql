-- +goose Up

-- When the turn came into its state: the order of a list of turns.
ALTER TABLE turns ADD COLUMN state_at timestamptz NOT NULL DEFAULT clock_timestamp();
UPDATE turns SET state_at = coalesce(finished_at, created_at);
CREATE INDEX turns_recent ON turns (workspace_id, state_at DESC, id DESC);

-- A turn may be reported to several receivers, in the words of other protocols.
ALTER TABLE callbacks
    ADD COLUMN name     text NOT NULL DEFAULT '', -- what its caller calls it; '' is the callback of the message
    ADD COLUMN protocol text NOT NULL DEFAULT 'parley' CHECK (protocol IN ('parley', 'a2a/0.3', 'a2a/1.0')),
    ADD COLUMN auth     sealed,                   -- what reports show to the receiver; bound to the turn and the name
    DROP CONSTRAINT callbacks_turn_id_key,
    ADD CONSTRAINT callbacks_turn UNIQUE (turn_id, name);
