-- +goose NO TRANSACTION
-- +goose Up

-- Each statement locks one table and releases it.

-- Facts about a turn that its events do not have.
ALTER TABLE turns
    ADD COLUMN IF NOT EXISTS origin json,          -- {"protocol","address","request_id"}: the request that sent the message; null: unknown or erased
    ADD COLUMN IF NOT EXISTS canceled_by json,     -- {"key","protocol","address","request_id"}: the request that ended it; null: none
    ADD COLUMN IF NOT EXISTS attempt_reason text;  -- why the next attempt begins: resumed, crash, drain or outage; null: it is the first

-- An index that was not completed is removed: a migration can run again.

-- What happened in a time. A BRIN index has a few pages, and an insert rarely changes it.
SET lock_timeout = '10min';
DROP INDEX CONCURRENTLY IF EXISTS turns_created;
CREATE INDEX CONCURRENTLY turns_created ON turns USING brin (created_at) WITH (pages_per_range = 32, autosummarize = on);
DROP INDEX CONCURRENTLY IF EXISTS messages_created;
CREATE INDEX CONCURRENTLY messages_created ON messages USING brin (created_at) WITH (pages_per_range = 32, autosummarize = on);

-- What an administrator changed in a time, in all workspaces.
DROP INDEX CONCURRENTLY IF EXISTS admin_log_at;
CREATE INDEX CONCURRENTLY admin_log_at ON admin_log USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
RESET lock_timeout;

-- The indexes of a partition of records for audits: the rows of a time, and the rare kinds that
-- questions about many sessions begin with. All other rows are in the first index only.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_indexes(partition text) RETURNS TABLE (name text, definition text) LANGUAGE sql IMMUTABLE AS $$
    VALUES (partition || '_at', 'USING brin (at) WITH (pages_per_range = 32, autosummarize = on)'),
           (partition || '_kind', $i$(kind, at) WHERE kind IN ('tool_use', 'reference', 'feedback', 'error', 'model_fallback')$i$),
           (partition || '_path', $i$((CASE WHEN data ->> 'source' = 'wiki_read' THEN 'wiki/' || (data ->> 'path') || '.md' ELSE data ->> 'path' END), at) WHERE kind = 'reference'$i$)
$$;
-- +goose StatementEnd
