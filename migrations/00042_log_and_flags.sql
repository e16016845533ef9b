-- +goose Up

-- The log keeps its rows, so it must not name the users of browser tokens: a user may be erased.
-- Tokens are made often and end within an hour. Their removal is not logged since 00035.
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE ON api_keys
    FOR EACH ROW WHEN (NOT NEW.browser) EXECUTE FUNCTION admin_log_write('{secret_hash}', '{last_used_at,updated_at}', '{id}');

-- As before, except that only rows of this cluster are compared: a restored dump has transactions of
-- another one. A row that this statement can see was written by a transaction before its snapshot's
-- end.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION admin_log_write() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    secret  text[] := TG_ARGV[0];
    quiet   text[] := TG_ARGV[1];
    ids     text[] := TG_ARGV[2];
    was     jsonb  := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    now     jsonb  := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    image   jsonb  := coalesce(now, was);
    changed text[] := '{}';
    space   uuid;
    actor   jsonb;
    name    text;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF was - quiet = now - quiet THEN
            RETURN NULL;
        END IF;
        changed := ARRAY(SELECT c FROM unnest(secret) c WHERE was -> c IS DISTINCT FROM now -> c);
    END IF;
    space := CASE TG_TABLE_NAME WHEN 'workspaces' THEN image ->> 'id' ELSE image ->> 'workspace_id' END;
    -- A deleted workspace has one row, not one for each of its parts.
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME <> 'workspaces' AND space IS NOT NULL
            AND NOT EXISTS (SELECT FROM workspaces WHERE id = space) THEN
        RETURN NULL;
    END IF;
    actor := coalesce(nullif(current_setting('parley.actor', true), '')::jsonb, CASE
        WHEN current_setting('application_name') LIKE 'parley%' THEN jsonb_build_object('kind', 'service')
        ELSE jsonb_build_object('kind', 'database', 'name', session_user, 'address', host(inet_client_addr())) END);
    name := (SELECT string_agg(image ->> c, '/' ORDER BY n) FROM unnest(ids) WITH ORDINALITY AS i (c, n));
    IF actor ? 'seen' AND pg_trigger_depth() = 1 AND EXISTS (
            SELECT FROM admin_log l
            WHERE l.workspace_id = space AND l.object = TG_TABLE_NAME AND l.object_id = name
              AND l.xact <> pg_current_xact_id()::text::bigint
              AND l.xact::text::xid8 < pg_snapshot_xmax(pg_current_snapshot())
              AND NOT pg_visible_in_snapshot(l.xact::text::xid8, (actor ->> 'seen')::pg_snapshot)) THEN
        RAISE EXCEPTION '% % has changed', TG_TABLE_NAME, name USING ERRCODE = 'PQ002';
    END IF;
    INSERT INTO admin_log (workspace_id, object, object_id, action, actor_kind, actor_id, actor_name, address, request_id, before, after)
    VALUES (space, TG_TABLE_NAME, name,
        lower(TG_OP), actor ->> 'kind', actor ->> 'id', actor ->> 'name', actor ->> 'address', actor ->> 'request_id',
        CASE WHEN was IS NOT NULL THEN admin_log_row(was, secret, '{}') END,
        CASE WHEN now IS NOT NULL THEN admin_log_row(now, secret, changed) END);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- As before, except that it waits until others that add or remove rules and servers of the workspace
-- have ended, so that its next statement sees what they did.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tools_flag() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    space uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.workspace_id ELSE NEW.workspace_id END;
BEGIN
    PERFORM FROM workspaces WHERE id = space FOR NO KEY UPDATE;
    UPDATE workspaces w SET has_tools = s.has
    FROM (SELECT EXISTS (SELECT FROM tool_rules WHERE workspace_id = space)
              OR EXISTS (SELECT FROM tool_servers WHERE workspace_id = space) AS has) s
    WHERE w.id = space AND w.has_tools <> s.has;
    RETURN NULL;
END $$;
-- +goose StatementEnd
