-- +goose Up

-- Tokens for browsers: keys for one session or one end user, at most an hour, which end with the key
-- or the membership of their maker.
ALTER TABLE api_keys
    ADD COLUMN browser      boolean NOT NULL DEFAULT false,
    ADD COLUMN maker_id     text REFERENCES api_keys ON DELETE CASCADE, -- null: member_id made it, signed in
    ADD COLUMN only_session uuid REFERENCES sessions ON DELETE CASCADE,
    ADD COLUMN only_user    text,
    ADD COLUMN only_agent   text,            -- null: the default agent
    ADD CHECK (CASE WHEN browser THEN (only_session IS NULL) <> (only_user IS NULL)
        AND (maker_id IS NOT NULL OR member_id IS NOT NULL) AND NOT webhook
        AND scopes <@ ARRAY['chat', 'sessions:read'] AND expires_at IS NOT NULL AND expires_at <= created_at + interval '1 hour'
        ELSE maker_id IS NULL AND only_session IS NULL AND only_user IS NULL AND only_agent IS NULL END);
CREATE INDEX api_keys_maker ON api_keys (maker_id) WHERE maker_id IS NOT NULL;
CREATE INDEX api_keys_only_session ON api_keys (only_session) WHERE only_session IS NOT NULL;
CREATE INDEX api_keys_browser ON api_keys (expires_at) WHERE browser;

-- Tokens that ended long ago are deleted. Only their creation is in the log of changes.
DROP TRIGGER admin_log ON api_keys;
CREATE TRIGGER admin_log AFTER INSERT OR UPDATE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{secret_hash}', '{last_used_at,updated_at}', '{id}');
CREATE TRIGGER admin_log_delete AFTER DELETE ON api_keys
    FOR EACH ROW WHEN (NOT OLD.browser) EXECUTE FUNCTION admin_log_write('{secret_hash}', '{last_used_at,updated_at}', '{id}');
