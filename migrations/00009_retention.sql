-- +goose Up

ALTER TABLE sessions ADD COLUMN erased_at timestamptz; -- its content is gone; what is left says that it was there

-- Who had a session erased, and when. It outlives the session.
CREATE TABLE erasures (
    session_id   uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    by           text NOT NULL,
    at           timestamptz NOT NULL DEFAULT now()
);

-- The partitions of the log that events_partitions has made, and when each of them is
-- over: nothing in it is as young as that. Others are nobody's business here.
-- +goose StatementBegin
CREATE FUNCTION events_partition_ends() RETURNS TABLE (name text, delta boolean, ends timestamptz) LANGUAGE sql STABLE AS $$
    SELECT c.relname::text, true, (to_date(right(c.relname, 8), 'YYYYMMDD') + interval '1 day') AT TIME ZONE 'UTC'
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'events_delta'::regclass AND c.relname ~ '^events_delta_\d{8}$'
    UNION ALL
    SELECT c.relname::text, false, (to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') AT TIME ZONE 'UTC'
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'events_record'::regclass AND c.relname ~ '^events_record_\d{6}$'
$$;
-- +goose StatementEnd

-- Drops the oldest partition that lies wholly before a time, and returns its name, or
-- null when there is none. What events_partitions would make again stays.
--
-- It is a plain DROP, with a short lock_timeout around it. DETACH CONCURRENTLY would
-- block nobody, but it waits for every transaction there is, works on one partition at a
-- time, and what it leaves half done when it is interrupted is in everybody's way.
-- +goose StatementBegin
CREATE FUNCTION events_drop(deltas_before timestamptz, records_before timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    today  timestamptz := date_trunc('day', now(), 'UTC');
    month  timestamptz := date_trunc('month', now(), 'UTC');
    oldest text;
BEGIN
    deltas_before := least(deltas_before, today - interval '1 day');
    records_before := least(records_before, (month AT TIME ZONE 'UTC' - interval '1 month') AT TIME ZONE 'UTC');
    SELECT p.name INTO oldest FROM events_partition_ends() p
    WHERE p.ends <= CASE WHEN p.delta THEN deltas_before ELSE records_before END
    ORDER BY p.ends, p.name LIMIT 1;
    IF oldest IS NOT NULL THEN
        EXECUTE format('DROP TABLE %I', oldest);
    END IF;
    RETURN oldest;
END $$;
-- +goose StatementEnd

-- Takes the content out of a session's log up to an event: the one exception to its
-- being append-only. What happened and when stays; the text of the answers goes row by
-- row, and {} stands for the rest. No event has that as its data.
-- +goose StatementBegin
CREATE FUNCTION events_erase(session uuid, upto bigint) RETURNS void LANGUAGE sql AS $$
    DELETE FROM events WHERE session_id = session AND seq <= upto AND delta;
    UPDATE events SET data = '{}' WHERE session_id = session AND seq <= upto AND NOT delta;
$$;
-- +goose StatementEnd
