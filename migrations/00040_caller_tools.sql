-- +goose NO TRANSACTION
-- +goose Up

-- Each statement locks one table that conversations write, and releases it. In one transaction they
-- would wait for a conversation that waits for them.

-- The caller's own tools: name, description and input_schema of each; null: none.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS tools json;

-- Turns also wait for results of tools: those of the caller's own tools, and those that the servers
-- of tools post later. NOT VALID: the rows that exist fit, and need no check under the lock.
ALTER TABLE approvals
    DROP CONSTRAINT IF EXISTS approvals_kind_check,
    ADD CONSTRAINT approvals_kind_check CHECK (kind IN ('approval', 'secret', 'tool', 'tool_result')) NOT VALID;

-- Calls whose results are posted from outside, and which of them have one. The result itself is an
-- event of the turn.
CREATE TABLE IF NOT EXISTS tool_replies (
    workspace_id uuid NOT NULL,
    tool_use_id  text NOT NULL,
    session_id   uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    turn_id      uuid NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('tool', 'tool_result')), -- of the question that waits for it
    approval_id  uuid,                       -- that question; null: the turn does not wait for it yet
    sha256       bytea,                      -- of the result; null: there is none
    key_id       text,                       -- API key that posted it
    replied_at   timestamptz,
    PRIMARY KEY (workspace_id, tool_use_id)
);
CREATE INDEX IF NOT EXISTS tool_replies_session ON tool_replies (session_id);
CREATE INDEX IF NOT EXISTS tool_replies_approval ON tool_replies (approval_id);
