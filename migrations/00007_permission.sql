-- +goose Up

-- How a workspace treats a tool, where that differs from the built-in rule.
CREATE TABLE tool_rules (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    tool         text NOT NULL,
    rule         text NOT NULL CHECK (rule IN ('allow', 'ask', 'deny')),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, tool)
);

-- Patterns of calls that need not ask, and where each comes from. Revoked ones stay:
-- they say why a call once ran.
CREATE TABLE allowlist (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    tool         text NOT NULL,
    pattern      text NOT NULL,              -- canonical, with the tool: bash(git diff *)
    added_by     text NOT NULL,              -- key id, or cli
    approval_id  uuid,                       -- the approval it was given with
    hits         bigint NOT NULL DEFAULT 0,  -- calls it allowed; coarse, see internal/store/permission
    last_hit_at  timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    revoked_at   timestamptz
);
-- A pattern is in force once. The rows of a workspace are read for every step of its
-- turns that calls tools.
CREATE UNIQUE INDEX allowlist_live ON allowlist (workspace_id, pattern) WHERE revoked_at IS NULL;
CREATE INDEX allowlist_workspace ON allowlist (workspace_id, created_at);
