-- +goose NO TRANSACTION
-- +goose Up

-- Turns also wait until a user has connected a tool server. NOT VALID: the rows that exist fit, and
-- need no check under the lock.
ALTER TABLE approvals
    DROP CONSTRAINT IF EXISTS approvals_kind_check,
    ADD CONSTRAINT approvals_kind_check CHECK (kind IN ('approval', 'secret', 'tool', 'tool_result', 'connect')) NOT VALID;

ALTER TABLE tool_servers
    ADD COLUMN IF NOT EXISTS auth               text NOT NULL DEFAULT 'none' CHECK (auth IN ('none', 'oauth')),
    ADD COLUMN IF NOT EXISTS auth_per           text NOT NULL DEFAULT 'workspace' CHECK (auth_per IN ('workspace', 'caller')), -- who has a grant of its own
    ADD COLUMN IF NOT EXISTS client_id          text,   -- at the authorization server; null: registered when first needed
    ADD COLUMN IF NOT EXISTS client_secret_name text,   -- name of a credential
    ADD COLUMN IF NOT EXISTS scopes             text[]; -- to ask for; null: those that the server names

-- What a tool server has granted to a holder: the tokens.
CREATE TABLE IF NOT EXISTS tool_grants (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    server_id    uuid NOT NULL REFERENCES tool_servers ON DELETE CASCADE,
    holder       text NOT NULL,                 -- '': the workspace; user:NAME, caller:ID or key:ID
    version      bigint NOT NULL DEFAULT 1,     -- counts the changes of the tokens
    tokens       sealed NOT NULL,               -- bound to the server and the holder
    key_id       text GENERATED ALWAYS AS (sealed_under(tokens)) STORED REFERENCES vault_keys,
    issuer       text NOT NULL,                 -- of the authorization server
    scopes       text[] NOT NULL,
    expires_at   timestamptz,                   -- of the access token; null: unknown
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (server_id, holder)
);

-- Parley as a client of an authorization server, as it was registered there.
CREATE TABLE IF NOT EXISTS tool_clients (
    server_id    uuid NOT NULL REFERENCES tool_servers ON DELETE CASCADE,
    issuer       text NOT NULL,
    redirect_url text NOT NULL,
    client       sealed NOT NULL,               -- id and secret; bound to the server and the issuer
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (server_id, issuer, redirect_url)
);

-- Links with which a browser connects a tool server.
CREATE TABLE IF NOT EXISTS tool_links (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    server_id    uuid NOT NULL REFERENCES tool_servers ON DELETE CASCADE,
    holder       text NOT NULL,                 -- of the grant
    code_hash    bytea NOT NULL UNIQUE,         -- SHA-256 of the code in the link
    session_id   uuid REFERENCES sessions ON DELETE CASCADE, -- whose turn waits; null: an administrator's link
    approval_id  uuid,                          -- the question of that turn
    state_hash   bytea UNIQUE,                  -- SHA-256 of the state of the newest authorization request
    flow         sealed,                        -- what that request needs afterwards; bound to the link
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz                    -- when the grant arrived
);
CREATE INDEX IF NOT EXISTS tool_links_server ON tool_links (server_id, holder);
CREATE INDEX IF NOT EXISTS tool_links_session ON tool_links (session_id);

-- The log of changes has the grant of a workspace. It names no caller, who may be erased.
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE ON tool_grants
    FOR EACH ROW WHEN (NEW.holder = '') EXECUTE FUNCTION admin_log_write('{tokens}', '{version,tokens,key_id,expires_at,updated_at}', '{id}');
CREATE OR REPLACE TRIGGER admin_log_removed AFTER DELETE ON tool_grants
    FOR EACH ROW WHEN (OLD.holder = '') EXECUTE FUNCTION admin_log_write('{tokens}', '{}', '{id}');
