-- +goose NO TRANSACTION
-- +goose Up

-- The end user of a session and its metadata are those of the message that began it, until an
-- administrator or the application changes them. A turn keeps those of its own message.
ALTER TABLE sessions
    ADD COLUMN IF NOT EXISTS end_user text,             -- as the caller names the user; null: not known
    ADD COLUMN IF NOT EXISTS metadata jsonb,            -- pairs of texts; null: none
    ADD COLUMN IF NOT EXISTS titled boolean NOT NULL DEFAULT false; -- the title was set, not derived from the first message
ALTER TABLE turns
    ADD COLUMN IF NOT EXISTS end_user text,             -- of the message, else of the session
    ADD COLUMN IF NOT EXISTS metadata jsonb;            -- of the message; null: none

-- Indexes of the list's filters. Writers are not blocked while one is made. Making one waits for
-- every transaction that is older: that wait blocks no other, so it may be long.
SET lock_timeout = '10min';

DROP INDEX CONCURRENTLY IF EXISTS sessions_user;
CREATE INDEX CONCURRENTLY sessions_user ON sessions (workspace_id, end_user, updated_at DESC, id DESC) WHERE end_user IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS sessions_metadata;
CREATE INDEX CONCURRENTLY sessions_metadata ON sessions USING gin (metadata jsonb_path_ops) WHERE metadata IS NOT NULL;

-- Sessions that were in use for more than an hour. A list of old sessions reads them besides those
-- whose last message is old.
DROP INDEX CONCURRENTLY IF EXISTS sessions_long;
CREATE INDEX CONCURRENTLY sessions_long ON sessions (workspace_id, updated_at DESC, id DESC) WHERE updated_at - created_at > interval '1 hour';

-- Full-text search. A derived title is the beginning of the first message, so only a title that was
-- set needs an index of its own. to_tsvector refuses texts of a megabyte and more.
DROP INDEX CONCURRENTLY IF EXISTS messages_words;
CREATE INDEX CONCURRENTLY messages_words ON messages USING gin (to_tsvector('simple'::regconfig, left(content, 50000)));
DROP INDEX CONCURRENTLY IF EXISTS sessions_title;
CREATE INDEX CONCURRENTLY sessions_title ON sessions USING gin (to_tsvector('simple'::regconfig, title)) WHERE titled;
