-- +goose NO TRANSACTION
-- +goose Up

-- What the requests of turns have from the configuration, once for each content: the instructions and
-- the tools. The event of each reply names the one of its request.
CREATE TABLE IF NOT EXISTS turn_setups (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    sha256       text NOT NULL,
    content      json NOT NULL,
    used_at      timestamptz NOT NULL DEFAULT clock_timestamp(), -- to a day
    PRIMARY KEY (workspace_id, sha256)
);
