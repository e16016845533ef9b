-- +goose Up

-- Sums of the turns that ended in a day of UTC, so that a report of ninety days reads a few rows. A
-- day is summed once, an hour after its end; the report counts the days since then from the turns.
CREATE TABLE usage_days (
    workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    kind          text NOT NULL CHECK (kind IN ('model', 'agent', 'key', 'user')),
    subject       text NOT NULL,             -- model, agent with its version, key id or user; '' is unknown
    day           date NOT NULL,
    turns         bigint NOT NULL,
    completed     bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_usd      numeric(18,8),             -- null: no turn had a known price
    PRIMARY KEY (workspace_id, kind, subject, day)
);
CREATE INDEX usage_days_day ON usage_days (workspace_id, day);

-- The days that are summed, for all workspaces.
CREATE TABLE usage_summed (day date PRIMARY KEY);

-- A member's named filters of the list of sessions.
CREATE TABLE session_views (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    user_id      text NOT NULL REFERENCES users ON DELETE CASCADE,
    name         text NOT NULL,
    filters      text NOT NULL,              -- query of the page
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (workspace_id, user_id, name)
);
CREATE INDEX session_views_user ON session_views (user_id);
