-- +goose Up

-- The transaction of a change, so that a later change can require that an object is as a snapshot
-- shows it: ids of this log are not in the order of commits.
ALTER TABLE admin_log ADD COLUMN xact bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX admin_log_name ON admin_log (workspace_id, object, object_id, id);

-- As before, except that a change whose actor has a "seen" snapshot fails if the object was changed
-- by a transaction which that snapshot does not show. The trigger runs while the changed row is
-- locked, and each of its statements has a snapshot of its own: no other change can commit in
-- between. Only direct changes are compared, not those of other triggers.
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
