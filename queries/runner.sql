-- name: EgressPolicy :one
SELECT * FROM egress_policies WHERE workspace_id = $1;

-- name: EgressPut :one
-- EgressPut replaces a policy. seen is the time of the change that the caller has read; null: any.
INSERT INTO egress_policies AS p (workspace_id, hosts, public) VALUES ($1, sqlc.arg(hosts)::text[], sqlc.arg(public))
ON CONFLICT (workspace_id) DO UPDATE SET hosts = excluded.hosts, public = excluded.public, updated_at = now()
WHERE sqlc.narg(seen)::timestamptz IS NULL OR p.updated_at = sqlc.narg(seen)
RETURNING *;

-- name: EgressRequestInsert :one
-- EgressRequestInsert inserts a row. A lazy one is durable with the next commit that is.
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true) WHERE sqlc.arg(lazy)::bool
), switched AS MATERIALIZED (SELECT count(*) FROM durability)
INSERT INTO egress_requests (workspace_id, session_id, turn_id, call_id, method, scheme, host, path, credentials, refused, decision)
SELECT sqlc.arg(workspace_id), sqlc.arg(session_id), sqlc.arg(turn_id), sqlc.arg(call_id), sqlc.arg(method), sqlc.arg(scheme), sqlc.arg(host), sqlc.arg(path),
    sqlc.arg(credentials)::text[], sqlc.arg(refused)::text[], sqlc.arg(decision)
FROM switched
RETURNING id;

-- name: EgressRequestDone :exec
-- EgressRequestDone completes a row. It is durable with the next commit that is: without it, the row
-- still says that the request was sent.
WITH durability AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE egress_requests SET status = sqlc.narg(status), decision = sqlc.arg(decision) FROM durability WHERE id = sqlc.arg(id);

-- name: EgressRequestRemove :exec
-- EgressRequestRemove removes the row of a refused request that another row counts.
DELETE FROM egress_requests WHERE id = $1;

-- name: EgressRequestsRepeat :exec
-- EgressRequestsRepeat counts repetitions of refused requests.
UPDATE egress_requests r SET times = r.times + v.times
FROM (SELECT unnest(sqlc.arg(ids)::bigint[]) AS id, unnest(sqlc.arg(times)::int[]) AS times) v
WHERE r.id = v.id;

-- name: EgressRequests :many
-- EgressRequests lists the newest requests of a workspace, or of one session.
SELECT r.* FROM egress_requests r
WHERE r.workspace_id = sqlc.arg(workspace_id) AND (sqlc.narg(session_id)::uuid IS NULL OR r.session_id = sqlc.narg(session_id)::uuid)
ORDER BY r.id DESC
LIMIT sqlc.arg(n);

-- name: EgressRequestsErase :exec
DELETE FROM egress_requests WHERE workspace_id = $1 AND session_id = $2;

-- name: EgressRequestsOld :execrows
-- EgressRequestsOld removes what is older than the audit retention.
DELETE FROM egress_requests WHERE id IN (
    SELECT r.id FROM egress_requests r WHERE r.at < now() - make_interval(secs => sqlc.arg(seconds)::float8) LIMIT sqlc.arg(n)
);

-- name: SessionsErased :many
-- SessionsErased are those of some sessions that were erased, or are there no more.
SELECT want.id::uuid AS id FROM unnest(sqlc.arg(ids)::uuid[]) AS want(id)
WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id = want.id AND s.erased_at IS NULL);

-- name: CredentialsRemoved :one
-- CredentialsRemoved reports whether one of some credentials was removed.
SELECT EXISTS (
    SELECT FROM credentials c WHERE c.workspace_id = sqlc.arg(workspace_id) AND c.name = ANY(sqlc.arg(names)::text[]) AND c.removed_at IS NOT NULL
) AS removed;
