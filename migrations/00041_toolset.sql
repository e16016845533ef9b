-- +goose Up

-- A workspace's own tools come from entries: an MCP server with its tools, or an HTTP tool.
CREATE TABLE tool_servers (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    workspace_id    uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name            text NOT NULL CHECK (name ~ '^[a-z][a-z0-9]*([-_][a-z0-9]+)*$' AND length(name) <= 31),
    kind            text NOT NULL CHECK (kind IN ('mcp', 'http')),
    url             text NOT NULL,
    headers         json NOT NULL DEFAULT '{}', -- {"Authorization":"Bearer ${CRM_TOKEN}"}: names of credentials, never values
    allowed         text[],                     -- the server's names of the tools to take; null: every tool
    timeout_seconds int NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 600), -- of a call
    enabled         boolean NOT NULL DEFAULT true,
    protocol        text NOT NULL DEFAULT '',   -- revision of MCP that the server speaks
    refreshed_at    timestamptz,                -- when its definitions were last read
    last_used_at    timestamptz,
    last_error      text,                       -- of the last use or refresh; null: it succeeded
    last_error_at   timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (workspace_id, name)
);
SELECT admin_log_on('tool_servers', '{}', '{protocol,refreshed_at,last_used_at,last_error,last_error_at}');

-- A tool of an entry. Only an accepted definition reaches the model, and only while the server
-- still offers the same one.
CREATE TABLE tool_definitions (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    workspace_id uuid NOT NULL,
    server_id    uuid NOT NULL REFERENCES tool_servers ON DELETE CASCADE,
    own_name     text NOT NULL,                  -- as the server calls it
    name         text NOT NULL CHECK (name ~ '^[a-z][a-zA-Z0-9_-]{0,63}$'), -- as the model sees it
    definition   json,                           -- accepted; null: never
    hash         bytea,                          -- of the accepted definition
    offered      json,                           -- a different definition that waits for acceptance
    offered_hash bytea,
    missing      boolean NOT NULL DEFAULT false, -- the server did not list it at the last refresh
    label        text NOT NULL DEFAULT 'changes' CHECK (label IN ('read_only', 'changes')),
    enabled      boolean NOT NULL DEFAULT true,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (workspace_id, name),
    UNIQUE (server_id, own_name),
    CHECK ((definition IS NULL) = (hash IS NULL) AND (offered IS NULL) = (offered_hash IS NULL))
);
SELECT admin_log_on('tool_definitions');

-- A removed tool takes its rule along: a later tool of the same name must not inherit it.
-- +goose StatementBegin
CREATE FUNCTION tool_definitions_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tool_rules WHERE workspace_id = OLD.workspace_id AND tool = OLD.name;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tool_definitions_removed AFTER DELETE ON tool_definitions FOR EACH ROW EXECUTE FUNCTION tool_definitions_removed();

-- A claim learns from the row of the workspace, which it reads in any case, whether there are rules
-- of tools or tools of its own to look at.
ALTER TABLE workspaces ADD COLUMN has_tools boolean NOT NULL DEFAULT false;
DROP TRIGGER admin_log ON workspaces;
SELECT admin_log_on('workspaces', '{}', '{budgeted,has_tools}');

-- +goose StatementBegin
CREATE FUNCTION tools_flag() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    space uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.workspace_id ELSE NEW.workspace_id END;
BEGIN
    UPDATE workspaces w SET has_tools = s.has
    FROM (SELECT EXISTS (SELECT FROM tool_rules WHERE workspace_id = space)
              OR EXISTS (SELECT FROM tool_servers WHERE workspace_id = space) AS has) s
    WHERE w.id = space AND w.has_tools <> s.has;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tools_flag AFTER INSERT OR DELETE ON tool_servers FOR EACH ROW EXECUTE FUNCTION tools_flag();
CREATE TRIGGER tools_flag AFTER INSERT OR DELETE ON tool_rules FOR EACH ROW EXECUTE FUNCTION tools_flag();
UPDATE workspaces w SET has_tools = true WHERE EXISTS (SELECT FROM tool_rules r WHERE r.workspace_id = w.id);
