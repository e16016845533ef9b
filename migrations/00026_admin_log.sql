-- +goose Up

-- Every change of the configuration, written by triggers: no program can leave one out. Rows are
-- never changed, and stay when their workspace is deleted.
CREATE TABLE admin_log (
    id           bigserial PRIMARY KEY,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    workspace_id uuid,                       -- null: of the server
    object       text NOT NULL,              -- the table
    object_id    text NOT NULL,              -- the primary key without the workspace, parts joined by /
    action       text NOT NULL CHECK (action IN ('insert', 'update', 'delete')),
    actor_kind   text NOT NULL,              -- key, member, command; service: a turn or a decision; database: any other program
    actor_id     text,                       -- of the key or the member
    actor_name   text,
    address      text,                       -- of the client
    request_id   text,
    before       jsonb,                      -- the row without secrets; null after an insert
    after        jsonb                       -- null after a delete
);
CREATE INDEX admin_log_workspace ON admin_log (workspace_id, id);
CREATE INDEX admin_log_object ON admin_log (workspace_id, object, id);
CREATE INDEX admin_log_actor ON admin_log (workspace_id, actor_id, id);

-- A row as the log shows it: secrets are hidden, and values of more than 4 KiB are hashes.
-- +goose StatementBegin
CREATE FUNCTION admin_log_row(image jsonb, secret text[], changed text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(key, CASE
        WHEN value = 'null' THEN value
        WHEN key = ANY (changed) THEN '"[changed]"'
        WHEN key = ANY (secret) THEN '"[hidden]"'
        WHEN octet_length(value #>> '{}') > 4096 THEN jsonb_build_object(
            'sha256', encode(sha256(convert_to(value #>> '{}', 'UTF8')), 'hex'), 'bytes', octet_length(value #>> '{}'))
        ELSE value END), '{}')
    FROM jsonb_each(image)
$$;
-- +goose StatementEnd

-- Its arguments are arrays of columns: the secret ones, those that only record use, the primary key.
-- +goose StatementBegin
CREATE FUNCTION admin_log_write() RETURNS trigger LANGUAGE plpgsql AS $$
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
    INSERT INTO admin_log (workspace_id, object, object_id, action, actor_kind, actor_id, actor_name, address, request_id, before, after)
    VALUES (space, TG_TABLE_NAME, (SELECT string_agg(image ->> c, '/' ORDER BY n) FROM unnest(ids) WITH ORDINALITY AS i (c, n)),
        lower(TG_OP), actor ->> 'kind', actor ->> 'id', actor ->> 'name', actor ->> 'address', actor ->> 'request_id',
        CASE WHEN was IS NOT NULL THEN admin_log_row(was, secret, '{}') END,
        CASE WHEN now IS NOT NULL THEN admin_log_row(now, secret, changed) END);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Logs the changes of a table. secret names columns whose values the log must not have, quiet
-- columns that only record use.
-- +goose StatementBegin
CREATE FUNCTION admin_log_on(target text, secret text[] DEFAULT '{}', quiet text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ids text[] := ARRAY(
        SELECT a.attname::text FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (num, n), pg_attribute a
        WHERE i.indrelid = target::regclass AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.num
        ORDER BY k.n);
BEGIN
    IF cardinality(ids) > 1 THEN
        ids := array_remove(ids, 'workspace_id');
    END IF;
    EXECUTE format('CREATE TRIGGER admin_log AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION admin_log_write(%L, %L, %L)',
        target, secret::text, (quiet || 'updated_at'::text)::text, ids::text);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION admin_log_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of admin_log are never changed or removed' USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER admin_log_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_log FOR EACH STATEMENT EXECUTE FUNCTION admin_log_keep();

SELECT admin_log_on('workspaces');
SELECT admin_log_on('api_keys', '{secret_hash}', '{last_used_at}');
SELECT admin_log_on('credentials', '{value}', '{key_id}');
SELECT admin_log_on('skills');
SELECT admin_log_on('skill_versions');
SELECT admin_log_on('documents', '{content}'); -- agents write them too: the log must not keep what is erased
SELECT admin_log_on('tool_rules');
SELECT admin_log_on('allowlist', '{}', '{hits,last_hit_at}');
SELECT admin_log_on('egress_policies');
SELECT admin_log_on('callback_secrets', '{secret}');
