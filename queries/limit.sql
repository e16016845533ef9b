-- name: RateTake :one
-- RateTake counts a request of a key: full_at, when the key has its whole quota again,
-- moves on by the request's share of the minute (the generic cell rate algorithm). A
-- request that would move it beyond a minute from now is refused and not counted.
-- debt is how far away full_at is, in seconds. The commit does not wait for the disk: a count lost in a
-- crash only lets a few more requests pass.
WITH took AS (
    INSERT INTO rate_limits AS r (key_id, class, full_at)
    VALUES (sqlc.arg(key_id), sqlc.arg(class), now() + make_interval(secs => sqlc.arg(share)::float8))
    ON CONFLICT (key_id, class) DO UPDATE SET full_at = greatest(r.full_at, now()) + make_interval(secs => sqlc.arg(share)::float8)
    WHERE greatest(r.full_at, now()) + make_interval(secs => sqlc.arg(share)::float8) <= now() + interval '1 minute'
    RETURNING r.full_at
)
SELECT EXISTS (SELECT FROM took)::boolean AS allowed,
       extract(epoch FROM coalesce(
           (SELECT took.full_at FROM took),
           (SELECT l.full_at FROM rate_limits l WHERE l.key_id = sqlc.arg(key_id) AND l.class = sqlc.arg(class)),
           now() + interval '1 minute') - now())::float8 AS debt,
       set_config('synchronous_commit', 'off', true)::text AS durability;

-- name: StreamsPublish :exec
-- StreamsPublish publishes to the other replicas what this one holds, and forgets those that
-- are long gone.
WITH gone AS (DELETE FROM open_streams o WHERE o.expires_at < now() - interval '1 minute')
INSERT INTO open_streams (node, held, expires_at) VALUES (sqlc.arg(node), sqlc.arg(held), now() + interval '3 seconds')
ON CONFLICT (node) DO UPDATE SET held = excluded.held, expires_at = excluded.expires_at;

-- name: StreamsWithdraw :exec
-- StreamsWithdraw removes the row of a replica that stops.
DELETE FROM open_streams WHERE node = $1;

-- name: StreamsElsewhere :many
-- StreamsElsewhere is how many streams of each key the other living replicas hold.
SELECT e.key_id::text AS key_id, e.streams::bigint AS streams FROM streams_elsewhere(sqlc.arg(node)::int) e;

-- name: RatesOf :many
-- RatesOf is how much of their quotas keys have used: debt as in RateTake. A key that has its whole
-- quota has no row.
SELECT key_id, class, extract(epoch FROM full_at - now())::float8 AS debt FROM rate_limits
WHERE key_id = ANY(sqlc.arg(keys)::text[]) AND full_at > now();
