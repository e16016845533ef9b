-- +goose NO TRANSACTION
-- +goose Up

-- Turns by their end: the chain looks for new ones each second. The condition keeps the index out of the
-- plan of retention, which reads the much smaller turns_long. An index that was not completed is
-- removed: a migration can run again.
SET lock_timeout = '10min';
DROP INDEX CONCURRENTLY IF EXISTS turns_ended;
CREATE INDEX CONCURRENTLY turns_ended ON turns (finished_at) WHERE end_seq IS NOT NULL;
RESET lock_timeout;
