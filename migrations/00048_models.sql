-- +goose NO TRANSACTION
-- +goose Up

-- Each statement locks one table and releases it.

-- A provider of models that a workspace has added. Its name is the first part of the names of its
-- models: it replaces a provider of the server with the same name.
CREATE TABLE IF NOT EXISTS model_providers (
    workspace_id    uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name            text NOT NULL CHECK (name ~ '^[a-z][a-z0-9]*([-_][a-z0-9]+)*$' AND length(name) <= 31),
    kind            text NOT NULL CHECK (kind IN ('openai', 'anthropic')), -- the protocol
    base_url        text NOT NULL,
    credential      text,               -- name of the credential that is its key; null: no key
    timeout_seconds int NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 600), -- the longest silence of a reply
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, name)
);
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE OR DELETE ON model_providers
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{}', '{updated_at}', '{name}');

-- Models that answer in place of an agent's model that fails, in this order.
ALTER TABLE workspaces
    ADD COLUMN IF NOT EXISTS fallback_models text[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS has_providers boolean NOT NULL DEFAULT false; -- of its own

CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE OR DELETE ON workspaces
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{}', '{budgeted,has_tools,has_providers,updated_at}', '{id}');

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION providers_flag() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    space uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.workspace_id ELSE NEW.workspace_id END;
BEGIN
    UPDATE workspaces w SET has_providers = s.has
    FROM (SELECT EXISTS (SELECT FROM model_providers WHERE workspace_id = space) AS has) s
    WHERE w.id = space AND w.has_providers <> s.has;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER providers_flag AFTER INSERT OR DELETE ON model_providers FOR EACH ROW EXECUTE FUNCTION providers_flag();
