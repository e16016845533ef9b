-- +goose NO TRANSACTION
-- +goose Up

-- Indexes of lists and of what retention removes, so that they cost the same however many rows there
-- are. Writers are not blocked while one is made. Making one waits for every transaction that is
-- older: that wait blocks no other, so it may be long.
SET lock_timeout = '10min';

-- Sessions without a turn.
DROP INDEX CONCURRENTLY IF EXISTS sessions_unstarted;
CREATE INDEX CONCURRENTLY sessions_unstarted ON sessions (workspace_id, updated_at DESC, id DESC) WHERE turn_id IS NULL;

-- Turns that have not ended, by workspace. It replaces turns_live, which knew two of the states.
DROP INDEX CONCURRENTLY IF EXISTS turns_open;
CREATE INDEX CONCURRENTLY turns_open ON turns (workspace_id, state) WHERE state IN ('lined_up', 'queued', 'running', 'waiting');
DROP INDEX CONCURRENTLY IF EXISTS turns_live;

-- Turns that ended without an answer.
DROP INDEX CONCURRENTLY IF EXISTS turns_unanswered;
CREATE INDEX CONCURRENTLY turns_unanswered ON turns (workspace_id, state, state_at DESC, id DESC) WHERE state IN ('failed', 'canceled');

-- Turns that took more than an hour: retention must know how far back those reach that ended of
-- late. Of the others it knows enough. It replaces turns_finished, which had every turn.
DROP INDEX CONCURRENTLY IF EXISTS turns_long;
CREATE INDEX CONCURRENTLY turns_long ON turns (finished_at, created_at) WHERE finished_at - created_at > interval '1 hour';
DROP INDEX CONCURRENTLY IF EXISTS turns_finished;

DROP INDEX CONCURRENTLY IF EXISTS approvals_status;
CREATE INDEX CONCURRENTLY approvals_status ON approvals (workspace_id, status, created_at DESC, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS callback_deliveries_undelivered;
CREATE INDEX CONCURRENTLY callback_deliveries_undelivered ON callback_deliveries (workspace_id, status, id DESC) WHERE status <> 'delivered';

DROP INDEX CONCURRENTLY IF EXISTS files_direction;
CREATE INDEX CONCURRENTLY files_direction ON files (workspace_id, direction, id) WHERE state <> 'deleted';

-- The newest requests of a session without a sort. It replaces egress_requests_session.
DROP INDEX CONCURRENTLY IF EXISTS egress_requests_recent;
CREATE INDEX CONCURRENTLY egress_requests_recent ON egress_requests (session_id, id);
DROP INDEX CONCURRENTLY IF EXISTS egress_requests_session;

-- Ids of turns begin with their time: this finds the keys of a session's turns, and the old keys.
DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_turn;
CREATE INDEX CONCURRENTLY idempotency_keys_turn ON idempotency_keys (turn_id);

-- Makes the partitions for the next days. Every replica calls it at start and then hourly; concurrent
-- calls wait for each other. A partition is made beside the log and then attached: CREATE TABLE …
-- PARTITION OF would lock the log, and wait for its slowest reader with every writer behind it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_partitions(days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    made  int := 0;
    today timestamptz := date_trunc('day', now(), 'UTC');
    month timestamptz := date_trunc('month', now(), 'UTC');
    starts timestamptz;
    ends timestamptz;
    name  text;
BEGIN
    PERFORM pg_advisory_xact_lock(7237120101);
    starts := today - interval '1 day';
    WHILE starts < today + make_interval(days => days) LOOP
        ends := starts + interval '1 day';
        name := 'events_delta_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE events_delta INCLUDING DEFAULTS)', name);
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
            EXECUTE format('ALTER TABLE events_record ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd
