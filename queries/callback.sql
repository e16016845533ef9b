-- name: CallbackPut :execrows
-- CallbackPut makes a callback of a turn, or changes the one of that name, unless the turn
-- has as many with names as it may.
INSERT INTO callbacks (id, workspace_id, session_id, turn_id, url, address, metadata, name, protocol, auth)
SELECT sqlc.arg(id)::uuid, sqlc.arg(workspace_id)::uuid, sqlc.arg(session_id)::uuid, sqlc.arg(turn_id)::uuid, '', sqlc.arg(address)::bytea,
       sqlc.arg(metadata)::json, sqlc.arg(name)::text, sqlc.arg(protocol)::text, sqlc.narg(auth)::bytea
WHERE (SELECT count(*) FROM callbacks c WHERE c.turn_id = sqlc.arg(turn_id)::uuid AND c.name NOT IN ('', sqlc.arg(name)::text)) < sqlc.arg(most)::int
ON CONFLICT (turn_id, name) DO UPDATE
SET url = '', address = excluded.address, metadata = excluded.metadata, protocol = excluded.protocol, auth = excluded.auth, disabled_at = NULL;

-- name: CallbacksPlain :many
-- CallbacksPlain lists callbacks whose address is not sealed: a process of an older release made
-- or changed them.
SELECT id, workspace_id, turn_id, name, url FROM callbacks WHERE url <> '' ORDER BY id LIMIT sqlc.arg(n);

-- name: CallbackSeal :exec
-- CallbackSeal replaces the plain address of a callback, unless the address has changed since it
-- was read.
UPDATE callbacks SET address = sqlc.arg(address)::bytea, url = '' WHERE id = sqlc.arg(id) AND url = sqlc.arg(plain)::text;

-- name: CallbacksOf :many
-- CallbacksOf are the callbacks of a turn that have a name, oldest first.
SELECT * FROM callbacks WHERE workspace_id = $1 AND turn_id = $2 AND name <> '' ORDER BY id;

-- name: CallbackDelete :exec
-- CallbackDelete removes a callback that has a name, and with it its deliveries.
DELETE FROM callbacks WHERE workspace_id = $1 AND turn_id = $2 AND name = $3 AND name <> '';

-- name: CallbackGet :one
-- CallbackGet is a callback with the state of its newest delivery.
SELECT c.*, coalesce((SELECT d.status FROM callback_deliveries d WHERE d.callback_id = c.id ORDER BY d.seq DESC LIMIT 1), 'waiting')::text AS status
FROM callbacks c WHERE c.workspace_id = $1 AND c.id = $2;

-- name: CallbackLock :one
-- CallbackLock makes those who ask for a callback's redelivery wait for each other.
SELECT id FROM callbacks WHERE workspace_id = $1 AND id = $2 FOR NO KEY UPDATE;

-- name: CallbackDisable :exec
UPDATE callbacks SET disabled_at = now() WHERE id = (SELECT d.callback_id FROM callback_deliveries d WHERE d.id = sqlc.arg(delivery_id)) AND disabled_at IS NULL;

-- name: CallbackEnable :exec
UPDATE callbacks SET disabled_at = NULL WHERE workspace_id = $1 AND id = $2 AND disabled_at IS NOT NULL;

-- name: CallbacksErase :exec
-- CallbacksErase removes a session's callbacks, and with them their deliveries.
DELETE FROM callbacks WHERE workspace_id = $1 AND session_id = $2;

-- name: DeliveriesInsert :many
-- DeliveriesInsert makes a report for each callback of a turn, as far as there are ids.
INSERT INTO callback_deliveries (id, callback_id, workspace_id, type, seq, created_at, next_at)
SELECT (sqlc.arg(ids)::uuid[])[c.n], c.id, c.workspace_id, sqlc.arg(type)::text, sqlc.arg(seq)::bigint, now(), now()
FROM (SELECT t.id, t.workspace_id, row_number() OVER (ORDER BY t.id) AS n FROM callbacks t
      WHERE t.turn_id = sqlc.arg(turn_id) AND t.disabled_at IS NULL) c
WHERE c.n <= cardinality(sqlc.arg(ids)::uuid[])
RETURNING id;

-- name: DeliveryJob :exec
-- DeliveryJob gives a delivery to a job; the job that had it before may not deliver
-- any more.
UPDATE callback_deliveries SET job_id = $2 WHERE id = $1;

-- name: DeliveryTake :one
-- DeliveryTake begins an attempt of the job that has the delivery. While it lasts the
-- delivery is not due; when it does not come to an end, it is again.
UPDATE callback_deliveries d SET next_at = now() + make_interval(secs => sqlc.arg(patience)::float8)
FROM callbacks c
WHERE d.id = sqlc.arg(id) AND d.job_id = sqlc.arg(job_id)::bigint AND d.status = 'pending' AND c.id = d.callback_id
RETURNING d.id, d.callback_id, d.workspace_id, d.type, d.seq, d.tries, d.body, d.created_at, c.session_id, c.turn_id, c.url, c.address, c.metadata,
          c.name, c.protocol, c.auth,
          (c.disabled_at IS NOT NULL)::boolean AS disabled,
          coalesce((SELECT t.origin ->> 'traceparent' FROM turns t WHERE t.id = c.turn_id), '')::text AS traceparent;

-- name: DeliveryBody :one
-- DeliveryBody keeps the body of the first who made one.
UPDATE callback_deliveries SET body = coalesce(body, sqlc.arg(body)::bytea) WHERE id = $1 RETURNING body;

-- name: DeliveryEnd :one
-- DeliveryEnd notes what came of an attempt, if the job still has the delivery.
UPDATE callback_deliveries
SET status = sqlc.arg(status)::text, attempts = attempts + 1, tries = tries + 1,
    next_at = CASE WHEN sqlc.arg(status)::text = 'pending' THEN now() + make_interval(secs => sqlc.arg(retry)::float8) END
WHERE id = sqlc.arg(id) AND job_id = sqlc.arg(job_id)::bigint AND callback_deliveries.status = 'pending'
RETURNING attempts;

-- name: DeliveryStop :exec
-- DeliveryStop ends a delivery without an attempt.
UPDATE callback_deliveries SET status = 'failed', next_at = NULL WHERE id = $1 AND status = 'pending';

-- name: AttemptInsert :exec
INSERT INTO callback_attempts (delivery_id, n, at, status, latency_ms, error)
VALUES ($1, $2, now() - make_interval(secs => sqlc.arg(latency_ms)::int / 1000.0), $3, sqlc.arg(latency_ms)::int, $4);

-- name: DeliveryAgain :one
-- DeliveryAgain begins the newest delivery of a callback from the start of its schedule.
UPDATE callback_deliveries SET status = 'pending', tries = 0, next_at = now()
WHERE id = (SELECT d.id FROM callback_deliveries d WHERE d.workspace_id = $1 AND d.callback_id = $2 ORDER BY d.seq DESC LIMIT 1)
RETURNING id;

-- name: DeliveriesOverdue :many
-- DeliveriesOverdue lists deliveries that were not begun in time: their job is gone, stuck, or
-- behind many others. It also lists those whose last attempt lies in the future: the clock was set
-- back since, and their next attempt would come late.
SELECT d.id, coalesce(d.job_id, 0)::bigint AS job_id, (d.next_at > now())::boolean AS ahead FROM callback_deliveries d
WHERE d.status = 'pending' AND (d.next_at < now() - interval '5 seconds' OR d.next_at > now() + interval '5 seconds'
  AND coalesce((SELECT a.at FROM callback_attempts a WHERE a.delivery_id = d.id AND a.n = d.attempts), d.created_at) > now() + interval '2 seconds')
ORDER BY d.next_at LIMIT 500;

-- name: DeliveryOrphaned :one
-- DeliveryOrphaned locks a delivery that still has the job it had, and is still overdue, or still due
-- too late, as it was. An attempt that has begun since makes an overdue delivery due later.
SELECT id FROM callback_deliveries
WHERE id = $1 AND coalesce(job_id, 0) = sqlc.arg(job_id)::bigint AND status = 'pending'
  AND CASE WHEN sqlc.arg(ahead)::boolean THEN next_at > now() + interval '5 seconds' ELSE next_at < now() - interval '5 seconds' END
FOR NO KEY UPDATE;

-- name: DeliveriesOf :many
-- DeliveriesOf are the newest deliveries of a callback.
SELECT * FROM callback_deliveries WHERE workspace_id = $1 AND callback_id = $2 ORDER BY seq DESC LIMIT $3;

-- name: AttemptsOf :many
-- AttemptsOf are the newest attempts at deliveries.
SELECT a.* FROM callback_deliveries d JOIN callback_attempts a ON a.delivery_id = d.id
WHERE d.workspace_id = $1 AND d.id = ANY(sqlc.arg(deliveries)::uuid[]) AND a.n > d.attempts - sqlc.arg(most)::int
ORDER BY a.delivery_id, a.n;

-- name: DeliveriesPage :many
-- DeliveriesPage is one page of a workspace's deliveries, newest first.
SELECT d.id, d.callback_id, d.type, d.seq, d.status, d.attempts, d.next_at, d.created_at, c.session_id, c.turn_id, c.name, c.url, c.address,
       a.at AS last_at, a.status AS last_status, a.latency_ms AS last_latency_ms, a.error AS last_error
FROM callback_deliveries d JOIN callbacks c ON c.id = d.callback_id
LEFT JOIN callback_attempts a ON a.delivery_id = d.id AND a.n = d.attempts
WHERE d.workspace_id = sqlc.arg(workspace_id)
  AND (sqlc.narg(status)::text IS NULL OR d.status = sqlc.narg(status)::text)
  AND (sqlc.narg(before)::uuid IS NULL OR d.id < sqlc.narg(before)::uuid)
ORDER BY d.id DESC LIMIT sqlc.arg(n);

-- name: SecretsLive :many
-- SecretsLive are the secrets that sign now, newest first.
SELECT id, secret FROM callback_secrets
WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > now()) ORDER BY expires_at IS NULL DESC, id DESC LIMIT 2;

-- name: SecretsState :many
-- SecretsState are the secrets that sign now, newest first, without their values.
SELECT id, shown, created_at, expires_at FROM callback_secrets
WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > now()) ORDER BY expires_at IS NULL DESC, id DESC;

-- name: SecretInsert :execrows
-- SecretInsert makes a workspace's first secret, or the next one after the newest was
-- given an end.
INSERT INTO callback_secrets (id, workspace_id, secret, shown) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id) WHERE expires_at IS NULL DO NOTHING;

-- name: SecretShow :one
-- SecretShow hands the newest secret out, once.
UPDATE callback_secrets SET shown = true WHERE workspace_id = $1 AND expires_at IS NULL AND NOT shown RETURNING id, secret;

-- name: SecretsRetire :exec
-- SecretsRetire gives the newest secret an end, and ends at once what was before it.
UPDATE callback_secrets SET expires_at = CASE WHEN expires_at IS NULL THEN now() + make_interval(secs => sqlc.arg(overlap)::float8) ELSE now() END
WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > now());
