-- +goose Up

-- The log is append-only. Its rows change only in events_erase, and leave it only there and with their
-- partition. Triggers refuse everything else, also to the owner of the tables; a role that does not
-- own them can neither remove the triggers nor pretend to be one of the functions.

-- The setting alone is worth nothing: any role can set it. Only a function that runs with the rights of
-- the owner has both.
-- +goose StatementBegin
CREATE FUNCTION events_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'TRUNCATE' AND current_setting('parley.erasing', true) = 'on'
            AND current_user = pg_get_userbyid((SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID)) THEN
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of the log are never changed or removed'
        USING ERRCODE = 'restrict_violation', HINT = 'parley sessions delete removes the content of a session.';
END $$;
-- +goose StatementEnd
CREATE TRIGGER events_keep BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION events_keep();

-- As before, except that it is the function which the triggers let pass.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_erase(session uuid, upto bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('parley.erasing', 'on', true);
    DELETE FROM events WHERE session_id = session AND seq <= upto AND delta;
    UPDATE events SET data = '{}' WHERE session_id = session AND seq <= upto AND NOT delta;
    PERFORM set_config('parley.erasing', 'off', true);
END $$;
-- +goose StatementEnd

-- Triggers for TRUNCATE are not inherited.
-- +goose StatementBegin
DO $do$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT relid FROM pg_partition_tree('events') LOOP
        EXECUTE format('CREATE TRIGGER events_keep_all BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION events_keep()', part);
    END LOOP;
END $do$;
-- +goose StatementEnd

-- As before, except that new partitions have their indexes and their trigger for TRUNCATE. Up makes the
-- indexes of older ones.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_partitions(days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    made  int := 0;
    today timestamptz := date_trunc('day', now(), 'UTC');
    month timestamptz := date_trunc('month', now(), 'UTC');
    starts timestamptz;
    ends timestamptz;
    name  text;
    i     record;
BEGIN
    PERFORM pg_advisory_xact_lock(7237120101);
    starts := today - interval '1 day';
    WHILE starts < today + make_interval(days => days) LOOP
        ends := starts + interval '1 day';
        name := 'events_delta_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE events_delta INCLUDING DEFAULTS)', name);
            EXECUTE format('CREATE TRIGGER events_keep_all BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION events_keep()', name);
            EXECUTE format('ALTER TABLE events_delta ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    starts := (month AT TIME ZONE 'UTC' - interval '1 month') AT TIME ZONE 'UTC';
    WHILE starts < today + make_interval(days => days) LOOP
        ends := (starts AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
        name := 'events_record_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMM');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE events_record INCLUDING DEFAULTS)', name);
            FOR i IN SELECT x.name, x.definition FROM events_indexes(name) x LOOP
                EXECUTE format('CREATE INDEX %I ON %I %s', i.name, name, i.definition);
            END LOOP;
            EXECUTE format('CREATE TRIGGER events_keep_all BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION events_keep()', name);
            EXECUTE format('ALTER TABLE events_record ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- These functions run with the rights of the owner of the tables, for the roles that may call them:
-- parley migrate grant lets the role of the service do so.
-- +goose StatementBegin
DO $do$
DECLARE
    f regprocedure;
BEGIN
    FOREACH f IN ARRAY ARRAY['events_partitions(int)', 'events_drop(timestamptz, timestamptz)', 'events_erase(uuid, bigint)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $do$;
-- +goose StatementEnd
