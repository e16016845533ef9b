-- +goose Up

-- The switch that stops agents: while paused_at is set no turn starts, and the running ones end. The
-- one row of server_state is the switch of all workspaces.
ALTER TABLE workspaces
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN paused_by text;
CREATE INDEX workspaces_paused ON workspaces (id) WHERE paused_at IS NOT NULL;

CREATE TABLE server_state (
    id        int PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    paused_at timestamptz,
    paused_by text
);
INSERT INTO server_state DEFAULT VALUES;
SELECT admin_log_on('server_state');
