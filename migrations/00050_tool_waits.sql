-- +goose NO TRANSACTION
-- +goose Up

-- A turn that waits for a grant continues when the holder has another one than that of its call.
ALTER TABLE tool_links
    ADD COLUMN IF NOT EXISTS grant_id uuid,   -- the grant that was not enough; null: there was none
    ADD COLUMN IF NOT EXISTS scopes   text[]; -- that the call needs, besides those of every request; null: none

-- An index that was not completed is removed: a migration can run again.

-- Every replica searches once a second for the questions that a grant has answered.
DROP INDEX CONCURRENTLY IF EXISTS approvals_connect;
CREATE INDEX CONCURRENTLY approvals_connect ON approvals (id) WHERE status = 'pending' AND kind = 'connect';
DROP INDEX CONCURRENTLY IF EXISTS tool_links_approval;
CREATE INDEX CONCURRENTLY tool_links_approval ON tool_links (approval_id);
