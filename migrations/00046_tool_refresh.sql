-- +goose NO TRANSACTION
-- +goose Up

-- Versions of grants, which are unique: a later grant of the same holder does not begin again. The
-- versions of before are smaller.
CREATE SEQUENCE IF NOT EXISTS tool_grant_versions START 1000000;

-- A replica claims a refresh with it, and the others wait.
ALTER TABLE tool_grants
    ADD COLUMN IF NOT EXISTS refreshing_until timestamptz, -- when a claim to refresh the tokens ends; null: nothing refreshes them
    ALTER COLUMN version SET DEFAULT nextval('tool_grant_versions');

-- A refresh is no change of the workspace.
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE ON tool_grants
    FOR EACH ROW WHEN (NEW.holder = '') EXECUTE FUNCTION admin_log_write('{tokens}', '{version,tokens,key_id,expires_at,updated_at,refreshing_until}', '{id}');

-- An index that was not completed is removed: a migration can run again.

-- The erasure of a session removes the grants of its caller.
DROP INDEX CONCURRENTLY IF EXISTS tool_grants_holder;
CREATE INDEX CONCURRENTLY tool_grants_holder ON tool_grants (workspace_id, holder);

-- Old links are removed by time.
DROP INDEX CONCURRENTLY IF EXISTS tool_links_end;
CREATE INDEX CONCURRENTLY tool_links_end ON tool_links (expires_at);
