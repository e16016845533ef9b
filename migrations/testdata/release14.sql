-- The statements of the release before: what its servers send while this one's migrations run.

-- name: APIKeyByID :one
SELECT k.id, k.workspace_id, k.name, k.secret_hash, k.last4, k.scopes, k.loopback, k.created_by, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, k.replaced_by, k.webhook, coalesce(k.last_used_at < now() - interval '1 minute', true)::boolean AS unnoted
FROM api_keys k WHERE k.id = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());

-- name: APIKeyInsert :one
INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes, loopback, webhook, created_by, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10::float8))
RETURNING id, workspace_id, name, secret_hash, last4, scopes, loopback, created_by, created_at, expires_at, last_used_at, revoked_at, replaced_by, webhook;

-- name: APIKeyReplace :execrows
UPDATE api_keys
SET replaced_by = $3, expires_at = least(expires_at, now() + make_interval(secs => $4::float8))
WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL AND replaced_by IS NULL;

-- name: APIKeyRevoke :execrows
UPDATE api_keys SET revoked_at = now() WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL;

-- name: APIKeyUsed :exec
UPDATE api_keys SET last_used_at = now()
WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: APIKeysDead :many
SELECT k.id::text FROM unnest($1::text[]) AS k (id)
WHERE NOT EXISTS (
    SELECT FROM api_keys a WHERE a.id = k.id AND a.revoked_at IS NULL AND (a.expires_at IS NULL OR a.expires_at > now())
);

-- name: APIKeysList :many
SELECT id, workspace_id, name, secret_hash, last4, scopes, loopback, created_by, created_at, expires_at, last_used_at, revoked_at, replaced_by, webhook FROM api_keys WHERE workspace_id = $1 ORDER BY created_at, id;

-- name: ApprovalAsked :one
SELECT request FROM approvals WHERE turn_id = $1 AND seq = $2;

-- name: ApprovalDecide :one
UPDATE approvals
SET status = $1, decided_at = clock_timestamp(), decided_by = $2,
    reason = $3, pattern = $4
WHERE id = $5 AND status = 'pending' AND expires_at > clock_timestamp()
RETURNING decided_at;

-- name: ApprovalExpire :execrows
UPDATE approvals SET status = 'expired', decided_at = expires_at
WHERE id = $1 AND status = 'pending' AND expires_at <= clock_timestamp();

-- name: ApprovalFirst :one
SELECT a.id FROM approvals a WHERE a.workspace_id = $1 AND a.turn_id = $2 ORDER BY a.seq LIMIT 1;

-- name: ApprovalGet :one
SELECT a.id, a.workspace_id, a.session_id, a.turn_id, a.kind, a.status, a.seq, a.request, a.created_at, a.expires_at, a.decided_at, a.decided_by, a.reason, a.pattern, (a.status = 'pending' AND a.expires_at <= clock_timestamp())::boolean AS overdue,
       greatest(0, extract(epoch FROM a.expires_at - clock_timestamp()))::float8 AS seconds_left
FROM approvals a WHERE a.workspace_id = $1 AND a.id = $2;

-- name: ApprovalInsert :one
INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + make_interval(secs => $6::float8))
RETURNING expires_at;

-- name: ApprovalNumber :one
SELECT count(*) FROM approvals a JOIN approvals b ON b.session_id = a.session_id AND b.seq <= a.seq
WHERE a.workspace_id = $1 AND a.id = $2;

-- name: ApprovalNumbered :one
SELECT a.id FROM approvals a WHERE a.workspace_id = $1 AND a.session_id = $2
ORDER BY a.seq OFFSET $3::int LIMIT 1;

-- name: ApprovalPending :one
SELECT id, kind, expires_at FROM approvals WHERE turn_id = $1 AND status = 'pending';

-- name: ApprovalRequest :exec
UPDATE approvals SET request = $2, seq = $3 WHERE id = $1;

-- name: ApprovalSettle :exec
SELECT id FROM sessions WHERE id = $1 FOR SHARE;

-- name: ApprovalsCancel :exec
UPDATE approvals
SET status = CASE WHEN expires_at > clock_timestamp() THEN 'canceled' ELSE 'expired' END,
    decided_at = least(expires_at, clock_timestamp())
WHERE turn_id = $1 AND status = 'pending';

-- name: ApprovalsOverdue :many
SELECT id, session_id FROM approvals WHERE status = 'pending' AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT 100;

-- name: ApprovalsPage :many
SELECT a.id, a.workspace_id, a.session_id, a.turn_id, a.kind, a.status, a.seq, a.request, a.created_at, a.expires_at, a.decided_at, a.decided_by, a.reason, a.pattern, (a.status = 'pending' AND a.expires_at <= clock_timestamp())::boolean AS overdue,
       greatest(0, extract(epoch FROM a.expires_at - clock_timestamp()))::float8 AS seconds_left
FROM approvals a
WHERE a.workspace_id = $1
  AND ($2::text IS NULL OR $2::text =
       CASE WHEN a.status = 'pending' AND a.expires_at <= clock_timestamp() THEN 'expired' ELSE a.status END)
  AND ($2::text IS DISTINCT FROM 'pending' OR a.status = 'pending')
  AND ($3::uuid IS NULL OR a.session_id = $3::uuid)
  AND ($4::timestamptz IS NULL OR (a.created_at, a.id) < ($4::timestamptz, $5::uuid))
ORDER BY a.created_at DESC, a.id DESC
LIMIT $6;

-- name: AttemptInsert :exec
INSERT INTO callback_attempts (delivery_id, n, at, status, latency_ms, error)
VALUES ($1, $2, now() - make_interval(secs => $5::int / 1000.0), $3, $5::int, $4);

-- name: AttemptsOf :many
SELECT a.delivery_id, a.n, a.at, a.status, a.latency_ms, a.error FROM callback_deliveries d JOIN callback_attempts a ON a.delivery_id = d.id
WHERE d.workspace_id = $1 AND d.id = ANY($2::uuid[]) AND a.n > d.attempts - $3::int
ORDER BY a.delivery_id, a.n;

-- name: CallbackDelete :exec
DELETE FROM callbacks WHERE workspace_id = $1 AND turn_id = $2 AND name = $3 AND name <> '';

-- name: CallbackDisable :exec
UPDATE callbacks SET disabled_at = now() WHERE id = (SELECT d.callback_id FROM callback_deliveries d WHERE d.id = $1) AND disabled_at IS NULL;

-- name: CallbackEnable :exec
UPDATE callbacks SET disabled_at = NULL WHERE workspace_id = $1 AND id = $2 AND disabled_at IS NOT NULL;

-- name: CallbackGet :one
SELECT c.id, c.workspace_id, c.session_id, c.turn_id, c.url, c.metadata, c.disabled_at, c.created_at, c.name, c.protocol, c.auth, coalesce((SELECT d.status FROM callback_deliveries d WHERE d.callback_id = c.id ORDER BY d.seq DESC LIMIT 1), 'waiting')::text AS status
FROM callbacks c WHERE c.workspace_id = $1 AND c.id = $2;

-- name: CallbackLock :one
SELECT id FROM callbacks WHERE workspace_id = $1 AND id = $2 FOR NO KEY UPDATE;

-- name: CallbackPut :execrows
INSERT INTO callbacks (id, workspace_id, session_id, turn_id, url, metadata, name, protocol, auth)
SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::text,
       $6::json, $7::text, $8::text, $9::bytea
WHERE (SELECT count(*) FROM callbacks c WHERE c.turn_id = $4::uuid AND c.name NOT IN ('', $7::text)) < $10::int
ON CONFLICT (turn_id, name) DO UPDATE
SET url = excluded.url, metadata = excluded.metadata, protocol = excluded.protocol, auth = excluded.auth, disabled_at = NULL;

-- name: CallbacksErase :exec
DELETE FROM callbacks WHERE workspace_id = $1 AND session_id = $2;

-- name: CallbacksOf :many
SELECT id, workspace_id, session_id, turn_id, url, metadata, disabled_at, created_at, name, protocol, auth FROM callbacks WHERE workspace_id = $1 AND turn_id = $2 AND name <> '' ORDER BY id;

-- name: DeliveriesInsert :many
INSERT INTO callback_deliveries (id, callback_id, workspace_id, type, seq)
SELECT ($1::uuid[])[c.n], c.id, c.workspace_id, $2::text, $3::bigint
FROM (SELECT t.id, t.workspace_id, row_number() OVER (ORDER BY t.id) AS n FROM callbacks t
      WHERE t.turn_id = $4 AND t.disabled_at IS NULL) c
WHERE c.n <= cardinality($1::uuid[])
RETURNING id;

-- name: DeliveriesOf :many
SELECT id, callback_id, workspace_id, type, seq, status, body, job_id, attempts, tries, next_at, created_at FROM callback_deliveries WHERE workspace_id = $1 AND callback_id = $2 ORDER BY seq DESC LIMIT $3;

-- name: DeliveriesOverdue :many
SELECT id, coalesce(job_id, 0)::bigint AS job_id FROM callback_deliveries
WHERE status = 'pending' AND next_at < now() - interval '5 seconds' ORDER BY next_at LIMIT 500;

-- name: DeliveriesPage :many
SELECT d.id, d.callback_id, d.type, d.seq, d.status, d.attempts, d.next_at, d.created_at, c.session_id, c.turn_id, c.url,
       a.at AS last_at, a.status AS last_status, a.latency_ms AS last_latency_ms, a.error AS last_error
FROM callback_deliveries d JOIN callbacks c ON c.id = d.callback_id
LEFT JOIN callback_attempts a ON a.delivery_id = d.id AND a.n = d.attempts
WHERE d.workspace_id = $1
  AND ($2::text IS NULL OR d.status = $2::text)
  AND ($3::uuid IS NULL OR d.id < $3::uuid)
ORDER BY d.id DESC LIMIT $4;

-- name: DeliveryAgain :one
UPDATE callback_deliveries SET status = 'pending', tries = 0, next_at = now()
WHERE id = (SELECT d.id FROM callback_deliveries d WHERE d.workspace_id = $1 AND d.callback_id = $2 ORDER BY d.seq DESC LIMIT 1)
RETURNING id;

-- name: DeliveryBody :one
UPDATE callback_deliveries SET body = coalesce(body, $2::bytea) WHERE id = $1 RETURNING body;

-- name: DeliveryEnd :one
UPDATE callback_deliveries
SET status = $1::text, attempts = attempts + 1, tries = tries + 1,
    next_at = CASE WHEN $1::text = 'pending' THEN now() + make_interval(secs => $2::float8) END
WHERE id = $3 AND job_id = $4::bigint AND callback_deliveries.status = 'pending'
RETURNING attempts;

-- name: DeliveryJob :exec
UPDATE callback_deliveries SET job_id = $2 WHERE id = $1;

-- name: DeliveryOrphaned :one
SELECT id FROM callback_deliveries
WHERE id = $1 AND coalesce(job_id, 0) = $2::bigint AND status = 'pending' AND next_at < now() - interval '5 seconds'
FOR NO KEY UPDATE;

-- name: DeliveryStop :exec
UPDATE callback_deliveries SET status = 'failed', next_at = NULL WHERE id = $1 AND status = 'pending';

-- name: DeliveryTake :one
UPDATE callback_deliveries d SET next_at = now() + make_interval(secs => $1::float8)
FROM callbacks c
WHERE d.id = $2 AND d.job_id = $3::bigint AND d.status = 'pending' AND c.id = d.callback_id
RETURNING d.id, d.callback_id, d.workspace_id, d.type, d.seq, d.tries, d.body, d.created_at, c.session_id, c.turn_id, c.url, c.metadata,
          c.name, c.protocol, c.auth,
          (c.disabled_at IS NOT NULL)::boolean AS disabled;

-- name: SecretInsert :execrows
INSERT INTO callback_secrets (id, workspace_id, secret, shown) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id) WHERE expires_at IS NULL DO NOTHING;

-- name: SecretShow :one
UPDATE callback_secrets SET shown = true WHERE workspace_id = $1 AND expires_at IS NULL AND NOT shown RETURNING id, secret;

-- name: SecretsLive :many
SELECT id, secret FROM callback_secrets
WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > now()) ORDER BY expires_at IS NULL DESC, id DESC LIMIT 2;

-- name: SecretsRetire :exec
UPDATE callback_secrets SET expires_at = CASE WHEN expires_at IS NULL THEN now() + make_interval(secs => $2::float8) ELSE now() END
WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > now());

-- name: EventExists :one
SELECT EXISTS (SELECT FROM events WHERE session_id = $1 AND seq BETWEEN $2 AND $2 + 1 AND at >= $3 AND (seq = $2 OR kind = 'open'));

-- name: EventsAfter :many
SELECT e.seq, e.ord, e.turn_id, e.at, e.kind, e.data,
       coalesce((SELECT p.ord FROM events p WHERE p.session_id = $1 AND p.seq <= $2 AND p.at >= $3 ORDER BY p.seq DESC LIMIT 1), 0)::bigint AS before
FROM events e
WHERE e.session_id = $1 AND e.seq > $2 AND e.at >= $3
ORDER BY e.seq
LIMIT $4;

-- name: EventsInsert :many
INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
SELECT $1::uuid, $2::uuid, clock_timestamp(), u.kind = 'text', $3::bigint + u.i, u.kind, u.data::json
FROM (SELECT unnest($4::text[]) AS kind, unnest($5::text[]) AS data,
             generate_series(1, cardinality($4::text[])) AS i) u
ORDER BY u.i
RETURNING seq, ord, at;

-- name: EventsPartitions :one
SELECT events_partitions($1::int)::int;

-- name: EventsWoken :many
SELECT e.session_id, e.seq, e.ord, e.turn_id, e.at, e.kind, e.data
FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::bigint[]) AS cursor) w
CROSS JOIN LATERAL (
    SELECT seq, session_id, at, delta, ord, turn_id, kind, data FROM events
    WHERE session_id = w.id AND seq > w.cursor AND at >= $3::timestamptz AND at < now() + interval '1 hour'
    ORDER BY seq
    LIMIT $4
) e;

-- name: TurnEvents :many
SELECT seq, ord, turn_id, at, kind, data FROM events
WHERE session_id = $1 AND turn_id = $2 AND at >= $3 AND NOT delta
ORDER BY seq;

-- name: TurnTail :one
SELECT coalesce(string_agg(data->>'text', '' ORDER BY seq), '')::text AS tail FROM events
WHERE session_id = $1 AND turn_id = $2 AND at >= $3 AND delta AND seq > $4;

-- name: ChunkGet :one
SELECT data FROM file_chunks WHERE upload_id = $1 AND n = $2;

-- name: ChunkPut :execrows
WITH u AS (UPDATE file_uploads SET touched_at = now() WHERE file_uploads.id = $1 RETURNING file_uploads.id)
INSERT INTO file_chunks (upload_id, n, data) SELECT u.id, $2, $3 FROM u;

-- name: FetchClaim :one
UPDATE files SET tries = tries + 1, fetch_after = now() + make_interval(secs => $1::float8)
WHERE files.id = (
    SELECT f.id FROM files f WHERE f.state = 'fetching' AND f.fetch_after <= now() ORDER BY f.fetch_after LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, code, reason, key_id, upload_until, origin, tries, fetch_after, session_id, turn_id, call_id, idempotency_key, request_hash, created_at, ready_at, deleted_at;

-- name: FetchLater :exec
UPDATE files SET fetch_after = now() + make_interval(secs => $1::float8)
WHERE id = $2 AND tries = $3 AND state = 'fetching';

-- name: FileByCall :one
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f
WHERE f.workspace_id = $1 AND f.turn_id = $2::uuid AND f.call_id = $3::text;

-- name: FileClock :one
SELECT now()::timestamptz AS now;

-- name: FileDelete :exec
UPDATE files
SET state = 'deleted', upload_id = NULL, origin = NULL, fetch_after = NULL, deleted_at = now()
WHERE workspace_id = $1 AND id = $2;

-- name: FileForget :exec
UPDATE files SET idempotency_key = NULL
WHERE workspace_id = $1 AND idempotency_key = $2::text AND created_at < now() - interval '24 hours';

-- name: FileGet :one
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f WHERE f.workspace_id = $1 AND f.id = $2 AND f.state <> 'deleted';

-- name: FileInsert :one
INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, key_id, origin, fetch_after,
                   idempotency_key, request_hash, upload_until)
VALUES ($1, $2, 'in', $3, $4, $5, $6, $7,
        $8, $9, $10, now(), $11, $12,
        now() + make_interval(secs => $13::float8))
ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, code, reason, key_id, upload_until, origin, tries, fetch_after, session_id, turn_id, call_id, idempotency_key, request_hash, created_at, ready_at, deleted_at;

-- name: FileOnce :one
SELECT id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, code, reason, key_id, upload_until, origin, tries, fetch_after, session_id, turn_id, call_id, idempotency_key, request_hash, created_at, ready_at, deleted_at FROM files WHERE workspace_id = $1 AND idempotency_key = $2::text;

-- name: FileProduce :one
INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, session_id, turn_id, call_id, ready_at)
SELECT $1::uuid, s.workspace_id, 'out', 'ready', $2::text, $3::text, $4::bigint, $5::bytea, true,
       $6::uuid, s.id, $7::uuid, $8::text, now()
FROM sessions s WHERE s.workspace_id = $9 AND s.id = $10 AND s.erased_at IS NULL
FOR SHARE
ON CONFLICT (turn_id, call_id) WHERE turn_id IS NOT NULL DO NOTHING
RETURNING id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, code, reason, key_id, upload_until, origin, tries, fetch_after, session_id, turn_id, call_id, idempotency_key, request_hash, created_at, ready_at, deleted_at;

-- name: FileReady :execrows
UPDATE files
SET state = 'ready', upload_id = $1::uuid, mime = $2, size = $3::bigint, sha256 = $4::bytea,
    origin = NULL, fetch_after = NULL, ready_at = now()
WHERE workspace_id = $5 AND id = $6 AND state IN ('pending', 'fetching');

-- name: FileReject :execrows
UPDATE files
SET state = 'rejected', code = $1::text, reason = $2::text, origin = NULL, fetch_after = NULL
WHERE workspace_id = $3 AND id = $4 AND state IN ('pending', 'fetching');

-- name: FileUpload :one
SELECT upload_id FROM files WHERE workspace_id = $1 AND id = $2 AND state <> 'deleted' FOR UPDATE;

-- name: FilesAttachable :many
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f
WHERE f.workspace_id = $1 AND f.id = ANY($2::uuid[]) AND f.state <> 'deleted'
FOR SHARE;

-- name: FilesCount :one
SELECT count(*) FROM files WHERE turn_id = $1::uuid;

-- name: FilesErase :exec
DELETE FROM files WHERE workspace_id = $1 AND id = ANY($2::uuid[]);

-- name: FilesFetching :one
SELECT count(*) FROM files WHERE workspace_id = $1 AND state = 'fetching';

-- name: FilesIn :many
SELECT t.turn_id AS turn, f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at
FROM turn_files t JOIN files f ON f.id = t.file_id
WHERE t.workspace_id = $1 AND t.turn_id = ANY($2::uuid[]) AND f.state = 'ready'
ORDER BY t.turn_id, t.n;

-- name: FilesOfSession :many
SELECT f.id, f.upload_id FROM files f
WHERE f.workspace_id = $1
  AND (f.session_id = $2::uuid
    OR f.id IN (SELECT tf.file_id FROM turn_files tf JOIN turns t ON t.id = tf.turn_id WHERE t.session_id = $2::uuid))
  AND NOT EXISTS (SELECT FROM turn_files o JOIN turns t ON t.id = o.turn_id WHERE o.file_id = f.id AND t.session_id <> $2::uuid)
ORDER BY f.id
FOR UPDATE;

-- name: FilesOfTurn :many
SELECT id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, code, reason, key_id, upload_until, origin, tries, fetch_after, session_id, turn_id, call_id, idempotency_key, request_hash, created_at, ready_at, deleted_at FROM files WHERE turn_id = $1::uuid AND state = 'ready' ORDER BY id;

-- name: FilesOut :many
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f
WHERE f.workspace_id = $1 AND f.turn_id = ANY($2::uuid[]) AND f.state = 'ready'
ORDER BY f.id;

-- name: FilesPage :many
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f
WHERE f.workspace_id = $1 AND f.state <> 'deleted' AND f.id < $2
  AND ($3::text IS NULL OR f.direction = $3::text)
ORDER BY f.id DESC
LIMIT $4;

-- name: FilesProduced :many
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM files f
WHERE f.workspace_id = $1 AND f.session_id = $2::uuid AND f.direction = 'out' AND f.state = 'ready'
  AND ($3::uuid IS NULL OR f.turn_id = $3::uuid)
  AND ($4::text IS NULL OR f.filename = $4::text)
ORDER BY f.id DESC
LIMIT $5;

-- name: FilesPurge :exec
DELETE FROM files
WHERE state = 'pending' AND created_at < now() - interval '1 day' OR state = 'rejected' AND created_at < now() - interval '7 days';

-- name: FilesReceived :many
SELECT t.turn_id AS turn, f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at
FROM turns u JOIN turn_files t ON t.turn_id = u.id JOIN files f ON f.id = t.file_id
WHERE u.workspace_id = $1 AND u.session_id = $2 AND f.state = 'ready'
  AND u.created_at <= (SELECT last.created_at FROM turns last WHERE last.id = $3)
ORDER BY u.created_at, u.id, t.n;

-- name: TurnFilePut :exec
INSERT INTO turn_files (turn_id, file_id, workspace_id, n) VALUES ($1, $2, $3, $4);

-- name: TurnFiles :many
SELECT f.id, f.workspace_id, f.direction, f.state, f.filename, f.mime, f.size, f.sha256, f.unrestricted, f.upload_id, f.code, f.reason, f.key_id, f.upload_until, f.origin, f.tries, f.fetch_after, f.session_id, f.turn_id, f.call_id, f.idempotency_key, f.request_hash, f.created_at, f.ready_at, f.deleted_at FROM turn_files t JOIN files f ON f.id = t.file_id
WHERE t.turn_id = $1 AND f.state = 'ready'
ORDER BY t.n;

-- name: TurnFilesErase :exec
DELETE FROM turn_files f USING turns t WHERE f.workspace_id = $1 AND t.session_id = $2 AND f.turn_id = t.id;

-- name: UploadBegin :exec
INSERT INTO file_uploads (id) VALUES ($1);

-- name: UploadDrop :exec
DELETE FROM file_uploads WHERE id = $1;

-- name: UploadsAbandoned :exec
DELETE FROM file_uploads u
WHERE u.touched_at < now() - interval '30 minutes' AND NOT EXISTS (SELECT FROM files f WHERE f.upload_id = u.id);

-- name: UploadsDrop :exec
DELETE FROM file_uploads WHERE id = ANY($1::uuid[]);

-- name: RateTake :one
WITH took AS (
    INSERT INTO rate_limits AS r (key_id, class, full_at)
    VALUES ($1, $2, now() + make_interval(secs => $3::float8))
    ON CONFLICT (key_id, class) DO UPDATE SET full_at = greatest(r.full_at, now()) + make_interval(secs => $3::float8)
    WHERE greatest(r.full_at, now()) + make_interval(secs => $3::float8) <= now() + interval '1 minute'
    RETURNING r.full_at
)
SELECT EXISTS (SELECT FROM took)::boolean AS allowed,
       extract(epoch FROM coalesce(
           (SELECT took.full_at FROM took),
           (SELECT l.full_at FROM rate_limits l WHERE l.key_id = $1 AND l.class = $2),
           now() + interval '1 minute') - now())::float8 AS debt;

-- name: StreamsElsewhere :many
SELECT e.key_id::text AS key_id, e.streams::bigint AS streams FROM streams_elsewhere($1::int) e;

-- name: StreamsPublish :exec
WITH gone AS (DELETE FROM open_streams o WHERE o.expires_at < now() - interval '1 minute')
INSERT INTO open_streams (node, held, expires_at) VALUES ($1, $2, now() + interval '3 seconds')
ON CONFLICT (node) DO UPDATE SET held = excluded.held, expires_at = excluded.expires_at;

-- name: StreamsWithdraw :exec
DELETE FROM open_streams WHERE node = $1;

-- name: MessageAnswer :one
SELECT t.id, t.session_id, t.workspace_id, t.state, t.error, t.start_seq, t.end_seq, t.epoch, t.node, t.lease_until, t.job_id, t.halted_at, t.max_response_seconds, t.max_turns, t.active_seconds, t.max_cost_usd, t.key_id, t.scopes, t.request_hash, t.prompt, t.response_schema, t.secrets, t.rejected, t.callback_id, t.created_at, t.started_at, t.finished_at, t.state_at, t.told_at, m.id, m.session_id, m.turn_id, m.workspace_id, m.role, m.content, m.label, m.skill, m.status, m.error, m.structured_result, m.attachments, m.tool_calls, m.refs, m.usage, m.first_seq, m.last_seq, m.created_at, m.named, m.failure FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
WHERE t.workspace_id = $1 AND t.id = $2;

-- name: MessageClose :exec
UPDATE messages m
SET failure = $1, content = (SELECT coalesce(string_agg(e.data->>'text', '' ORDER BY e.seq), '') FROM events e
               WHERE e.session_id = m.session_id AND e.turn_id = m.turn_id AND e.at >= $2::timestamptz AND e.delta),
    status = $3, error = $4, tool_calls = $5, refs = $6,
    structured_result = $7, attachments = $8,
    usage = $9, last_seq = $10
WHERE m.turn_id = $11 AND m.role = 'assistant';

-- name: MessageInsert :exec
INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, label, skill, named, status, first_seq, last_seq, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_timestamp());

-- name: MessagesBefore :many
SELECT role, content, structured_result FROM messages
WHERE session_id = $1 AND turn_id <> $2::uuid AND first_seq < $3::bigint AND content IS NOT NULL
ORDER BY first_seq DESC LIMIT $4;

-- name: MessagesPage :many
SELECT id, session_id, turn_id, workspace_id, role, content, label, skill, status, error, structured_result, attachments, tool_calls, refs, usage, first_seq, last_seq, created_at, named, failure FROM messages
WHERE session_id = $1 AND first_seq > $2::bigint
ORDER BY first_seq LIMIT $3;

-- name: MessagesPageDesc :many
SELECT id, session_id, turn_id, workspace_id, role, content, label, skill, status, error, structured_result, attachments, tool_calls, refs, usage, first_seq, last_seq, created_at, named, failure FROM messages
WHERE session_id = $1 AND first_seq < $2::bigint
ORDER BY first_seq DESC LIMIT $3;

-- name: AnswerGet :one
SELECT a.hash, a.status, a.answer FROM idempotent_answers a
WHERE a.workspace_id = $1 AND a.route = $2 AND a.key = $3 AND a.created_at > now() - interval '24 hours';

-- name: AnswerLock :exec
SELECT pg_advisory_xact_lock(20563, hashtext(concat_ws('/', $1::uuid, $2::text, $3::text)));

-- name: AnswerPut :exec
INSERT INTO idempotent_answers (workspace_id, route, key, hash, status, answer) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (workspace_id, route, key) DO UPDATE
SET hash = excluded.hash, status = excluded.status, answer = excluded.answer, created_at = now();

-- name: AnswersPurge :exec
DELETE FROM idempotent_answers WHERE created_at < now() - interval '24 hours';

-- name: AllowlistCount :one
SELECT count(*)::int FROM allowlist WHERE workspace_id = $1 AND revoked_at IS NULL;

-- name: AllowlistHits :exec
UPDATE allowlist SET hits = hits + $2, last_hit_at = now() WHERE id = $1;

-- name: AllowlistInsert :execrows
INSERT INTO allowlist (id, workspace_id, tool, pattern, added_by, approval_id)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (workspace_id, pattern) WHERE revoked_at IS NULL DO NOTHING;

-- name: AllowlistList :many
SELECT id, workspace_id, tool, pattern, added_by, approval_id, hits, last_hit_at, created_at, revoked_at FROM allowlist WHERE workspace_id = $1 ORDER BY created_at, id;

-- name: AllowlistRevoke :execrows
UPDATE allowlist SET revoked_at = now() WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL;

-- name: PermissionRules :many
SELECT tool, rule, NULL::uuid AS id, NULL::timestamptz AS created_at FROM tool_rules WHERE tool_rules.workspace_id = $1
UNION ALL
SELECT tool, pattern, id, created_at FROM allowlist WHERE allowlist.workspace_id = $1 AND revoked_at IS NULL
ORDER BY created_at, id;

-- name: ToolRuleDelete :exec
DELETE FROM tool_rules WHERE workspace_id = $1 AND tool = $2;

-- name: ToolRuleSet :exec
INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, $2, $3)
ON CONFLICT (workspace_id, tool) DO UPDATE SET rule = excluded.rule, updated_at = now();

-- name: ToolRules :many
SELECT tool, rule, updated_at FROM tool_rules WHERE workspace_id = $1;

-- name: AnswersErase :exec
DELETE FROM idempotent_answers WHERE workspace_id = $1 AND position(convert_to($2::uuid::text, 'UTF8') IN answer) > 0;

-- name: ApprovalsErase :exec
UPDATE approvals SET request = NULL, reason = NULL, pattern = NULL WHERE session_id = $1;

-- name: ErasureInsert :exec
INSERT INTO erasures (session_id, workspace_id, by) VALUES ($1, $2, $3);

-- name: EventsDrop :one
SELECT coalesce(events_drop($1::timestamptz, $2::timestamptz), '')::text AS name;

-- name: EventsErase :exec
SELECT events_erase($1::uuid, $2::bigint);

-- name: IdempotencyErase :exec
DELETE FROM idempotency_keys i USING turns t WHERE t.session_id = $1 AND i.turn_id = t.id;

-- name: MessagesErase :exec
UPDATE messages SET content = NULL, label = NULL, skill = NULL, named = NULL, failure = NULL, structured_result = NULL, attachments = NULL, tool_calls = '[]', refs = '[]'
WHERE session_id = $1;

-- name: Partitions :many
SELECT p.name::text AS name, p.delta::boolean AS delta, p.ends::timestamptz AS ends,
       coalesce(pg_total_relation_size(to_regclass(p.name)), 0)::bigint AS bytes
FROM events_partition_ends() p ORDER BY p.delta DESC, p.ends;

-- name: RetentionBefore :one
SELECT (least(now() - make_interval(secs => $1::float8),
              (SELECT min(a.created_at) FROM turns a WHERE a.state IN ('queued', 'running', 'waiting')),
              (SELECT min(l.created_at) FROM turns l WHERE l.state = 'lined_up'),
              (SELECT min(f.created_at) FROM turns f WHERE f.finished_at >= now() - make_interval(secs => $1::float8)))
        - interval '1 hour')::timestamptz AS deltas,
       (least(now() - make_interval(secs => $2::float8),
              (SELECT min(a.created_at) FROM turns a WHERE a.state IN ('queued', 'running', 'waiting')),
              (SELECT min(l.created_at) FROM turns l WHERE l.state = 'lined_up'))
        - interval '1 hour')::timestamptz AS records;

-- name: RetentionLock :one
SELECT pg_try_advisory_lock(20564, 1);

-- name: RetentionPatience :exec
SELECT set_config('lock_timeout', $1::int::text, true), set_config('statement_timeout', '60s', true);

-- name: RetentionUnlock :exec
SELECT pg_advisory_unlock(20564, 1);

-- name: SessionErase :one
UPDATE sessions SET erased_at = now(), title = '', caller_id = NULL WHERE id = $1 RETURNING erased_at::timestamptz AS erased_at;

-- name: SessionForget :exec
DELETE FROM sessions WHERE id = $1;

-- name: SessionPast :execrows
SELECT s.id FROM sessions s
WHERE s.id = $1 AND s.updated_at < now() - make_interval(secs => $2::float8)
  AND NOT EXISTS (SELECT FROM turns t WHERE t.session_id = s.id AND t.state IN ('lined_up', 'queued', 'running', 'waiting'))
FOR UPDATE;

-- name: SessionsPast :many
SELECT p.id, p.workspace_id FROM workspaces w CROSS JOIN LATERAL (
    SELECT s.id, s.workspace_id FROM sessions s
    WHERE s.workspace_id = w.id AND s.updated_at < now() - make_interval(secs => $1::float8)
    ORDER BY s.updated_at LIMIT $2
) p LIMIT $2;

-- name: SessionsPastCount :one
SELECT count(*) FROM sessions s WHERE s.updated_at < now() - make_interval(secs => $1::float8);

-- name: TurnsErase :exec
UPDATE turns SET prompt = NULL, request_hash = NULL, response_schema = NULL, secrets = '{}', rejected = NULL WHERE session_id = $1;

-- name: CredentialsRemoved :one
SELECT EXISTS (
    SELECT FROM credentials c WHERE c.workspace_id = $1 AND c.name = ANY($2::text[]) AND c.removed_at IS NOT NULL
) AS removed;

-- name: EgressAllow :exec
INSERT INTO egress_policies AS p (workspace_id, hosts) VALUES ($1, ARRAY[$2::text])
ON CONFLICT (workspace_id) DO UPDATE
SET hosts = ARRAY(SELECT DISTINCT h FROM unnest(p.hosts || excluded.hosts) AS h ORDER BY h), updated_at = now();

-- name: EgressPolicy :one
SELECT workspace_id, hosts, public, updated_at FROM egress_policies WHERE workspace_id = $1;

-- name: EgressPublic :exec
INSERT INTO egress_policies (workspace_id, public) VALUES ($1, $2)
ON CONFLICT (workspace_id) DO UPDATE SET public = excluded.public, updated_at = now();

-- name: EgressRemove :execrows
UPDATE egress_policies SET hosts = array_remove(hosts, $2::text), updated_at = now()
WHERE workspace_id = $1 AND $2::text = ANY(hosts);

-- name: EgressRequestDone :exec
UPDATE egress_requests SET status = $1, decision = $2 WHERE id = $3;

-- name: EgressRequestInsert :one
INSERT INTO egress_requests (workspace_id, session_id, turn_id, call_id, method, scheme, host, path, credentials, refused, decision)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
RETURNING id;

-- name: EgressRequests :many
SELECT r.id, r.workspace_id, r.session_id, r.turn_id, r.call_id, r.at, r.method, r.scheme, r.host, r.path, r.credentials, r.refused, r.decision, r.status FROM egress_requests r
WHERE r.workspace_id = $1 AND ($2::uuid IS NULL OR r.session_id = $2::uuid)
ORDER BY r.id DESC
LIMIT $3;

-- name: EgressRequestsErase :exec
DELETE FROM egress_requests WHERE workspace_id = $1 AND session_id = $2;

-- name: EgressRequestsOld :execrows
DELETE FROM egress_requests WHERE id IN (
    SELECT r.id FROM egress_requests r WHERE r.at < now() - make_interval(secs => $1::float8) LIMIT $2
);

-- name: SessionsErased :many
SELECT want.id::uuid AS id FROM unnest($1::uuid[]) AS want(id)
WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id = want.id AND s.erased_at IS NULL);

-- name: SessionAdvance :exec
UPDATE sessions SET last_seq = $2, last_ord = $3 WHERE id = $1;

-- name: SessionBegin :exec
UPDATE sessions
SET message_count = message_count + 2, updated_at = clock_timestamp(),
    title = CASE WHEN title = '' THEN $2::text ELSE title END
WHERE id = $1;

-- name: SessionByCaller :one
SELECT id FROM sessions WHERE workspace_id = $1 AND caller_id = $2::text;

-- name: SessionEnd :exec
UPDATE sessions
SET updated_at = clock_timestamp(),
    input_tokens = input_tokens + $2::bigint,
    output_tokens = output_tokens + $3::bigint,
    cost_usd = CASE WHEN $4::numeric IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + $4::numeric END
WHERE id = $1;

-- name: SessionExists :one
SELECT EXISTS (SELECT FROM sessions WHERE workspace_id = $1 AND id = $2);

-- name: SessionHead :one
SELECT s.id, s.last_seq, s.created_at, s.erased_at, t.id AS turn_id, t.state, t.start_seq, t.end_seq, t.created_at AS turn_created_at,
       t.error,
       coalesce((SELECT o.end_seq FROM turns o
                 WHERE o.session_id = s.id AND o.finished_at < now() - make_interval(secs => $3::float8)
                 ORDER BY o.created_at DESC LIMIT 1), 0)::bigint AS gone_seq
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
WHERE s.workspace_id = $1 AND s.id = $2;

-- name: SessionInsert :one
INSERT INTO sessions (id, workspace_id, caller_id, title) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, caller_id) WHERE caller_id IS NOT NULL DO NOTHING
RETURNING id;

-- name: SessionLock :one
SELECT id, workspace_id, caller_id, title, epoch, last_seq, last_ord, turn_id, message_count, input_tokens, output_tokens, cost_usd, created_at, updated_at, erased_at FROM sessions WHERE id = $1 FOR NO KEY UPDATE;

-- name: SessionRaise :exec
UPDATE sessions SET epoch = $2 WHERE id = $1;

-- name: SessionSummary :one
SELECT s.id, s.workspace_id, s.caller_id, s.title, s.epoch, s.last_seq, s.last_ord, s.turn_id, s.message_count, s.input_tokens, s.output_tokens, s.cost_usd, s.created_at, s.updated_at, s.erased_at, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = $1 AND s.id = $2;

-- name: SessionTurn :exec
UPDATE sessions SET turn_id = $2 WHERE id = $1;

-- name: SessionsPage :many
SELECT s.id, s.workspace_id, s.caller_id, s.title, s.epoch, s.last_seq, s.last_ord, s.turn_id, s.message_count, s.input_tokens, s.output_tokens, s.cost_usd, s.created_at, s.updated_at, s.erased_at, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = $1
  AND ($2::text IS NULL OR s.caller_id = $2::text)
  AND ($3::timestamptz IS NULL OR s.created_at > $3::timestamptz)
  AND ($4::text IS NULL OR $4::text =
       CASE WHEN t.state IS NULL THEN 'not_started' WHEN t.state IN ('queued', 'running', 'waiting') THEN 'thinking' ELSE 'completed' END)
  AND ($4::text IS DISTINCT FROM 'thinking' OR t.state IN ('queued', 'running', 'waiting'))
  AND ($5::timestamptz IS NULL OR (s.updated_at, s.id) < ($5::timestamptz, $6::uuid))
ORDER BY s.updated_at DESC, s.id DESC
LIMIT $7;

-- name: SessionsPageAsc :many
SELECT s.id, s.workspace_id, s.caller_id, s.title, s.epoch, s.last_seq, s.last_ord, s.turn_id, s.message_count, s.input_tokens, s.output_tokens, s.cost_usd, s.created_at, s.updated_at, s.erased_at, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = $1
  AND ($2::text IS NULL OR s.caller_id = $2::text)
  AND ($3::timestamptz IS NULL OR s.created_at > $3::timestamptz)
  AND ($4::text IS NULL OR $4::text =
       CASE WHEN t.state IS NULL THEN 'not_started' WHEN t.state IN ('queued', 'running', 'waiting') THEN 'thinking' ELSE 'completed' END)
  AND ($4::text IS DISTINCT FROM 'thinking' OR t.state IN ('queued', 'running', 'waiting'))
  AND ($5::timestamptz IS NULL OR (s.updated_at, s.id) > ($5::timestamptz, $6::uuid))
ORDER BY s.updated_at, s.id
LIMIT $7;

-- name: SessionsSeq :many
SELECT id, last_seq FROM sessions WHERE id = ANY($1::uuid[]);

-- name: SkillActive :one
SELECT s.id, s.name, v.version, v.description, v.document, v.contract
FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.version = s.active
WHERE s.workspace_id = $1 AND s.fold = $2;

-- name: SkillArchive :exec
UPDATE skills SET status = 'archived', active = NULL, updated_at = now() WHERE workspace_id = $1 AND id = $2;

-- name: SkillChangeInsert :exec
INSERT INTO skill_changes (workspace_id, skill_id, action, version, actor) VALUES ($1, $2, $3, $4, $5);

-- name: SkillChanges :many
SELECT c.action, c.version, c.actor, c.at FROM skill_changes c JOIN skills s ON s.id = c.skill_id
WHERE s.workspace_id = $1 AND s.fold = $2
ORDER BY c.id;

-- name: SkillDocument :one
SELECT document FROM skill_versions WHERE workspace_id = $1 AND skill_id = $2 AND version = $3;

-- name: SkillFind :one
SELECT id, workspace_id, name, fold, status, newest, active, created_at, updated_at FROM skills WHERE workspace_id = $1 AND fold = $2 FOR UPDATE;

-- name: SkillLock :one
INSERT INTO skills (id, workspace_id, name, fold) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, fold) DO UPDATE SET fold = excluded.fold
RETURNING id, workspace_id, name, fold, status, newest, active, created_at, updated_at;

-- name: SkillNames :many
SELECT s.name FROM skills s
WHERE s.workspace_id = $1 AND (s.status = 'active' OR NOT $2::boolean)
ORDER BY s.fold COLLATE "C";

-- name: SkillPublish :exec
UPDATE skills SET status = 'active', active = $3::int, updated_at = now()
WHERE workspace_id = $1 AND id = $2;

-- name: SkillRename :exec
UPDATE skills SET name = $3 WHERE workspace_id = $1 AND id = $2;

-- name: SkillVersion :one
SELECT s.id, s.name, s.status, s.active, s.newest, v.version, v.description, v.document, v.contract, v.created_at
FROM skills s JOIN skill_versions v ON v.skill_id = s.id
WHERE s.workspace_id = $1 AND s.fold = $2 AND v.version = coalesce(nullif($3::int, 0), s.newest);

-- name: SkillVersionInsert :exec
WITH skill AS (
    UPDATE skills SET newest = newest + 1, updated_at = now()
    WHERE id = $5 AND workspace_id = $1
    RETURNING id, newest
)
INSERT INTO skill_versions (skill_id, version, workspace_id, description, document, contract)
SELECT skill.id, skill.newest, $1, $2, $3, $4 FROM skill;

-- name: SkillsList :many
SELECT s.name, s.status, s.active, s.newest, v.version, v.description, v.contract, s.created_at, s.updated_at
FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.version = coalesce(s.active, s.newest)
WHERE s.workspace_id = $1
ORDER BY s.fold COLLATE "C";

-- name: IdempotencyGet :one
SELECT i.hash, t.id AS turn_id, t.session_id, t.start_seq, t.created_at, t.callback_id FROM idempotency_keys i JOIN turns t ON t.id = i.turn_id
WHERE i.workspace_id = $1 AND i.route = $2 AND i.key = $3 AND i.created_at >= now() - interval '24 hours';

-- name: IdempotencyPurge :exec
DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours';

-- name: IdempotencyTake :execrows
INSERT INTO idempotency_keys (workspace_id, route, key, hash, turn_id) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (workspace_id, route, key) DO UPDATE
SET hash = excluded.hash, turn_id = excluded.turn_id, created_at = now()
WHERE idempotency_keys.created_at < now() - interval '24 hours';

-- name: LeasesRenew :many
UPDATE turns SET lease_until = clock_timestamp() + make_interval(secs => $1::float8)
WHERE id = ANY($2::uuid[]) AND node = $3::int AND state = 'running'
RETURNING id, epoch;

-- name: NodesAlive :many
SELECT nodes_alive()::int AS node;

-- name: TurnActive :one
SELECT id, session_id, workspace_id, state, error, start_seq, end_seq, epoch, node, lease_until, job_id, halted_at, max_response_seconds, max_turns, active_seconds, max_cost_usd, key_id, scopes, request_hash, prompt, response_schema, secrets, rejected, callback_id, created_at, started_at, finished_at, state_at, told_at FROM turns WHERE session_id = $1 AND state IN ('queued', 'running', 'waiting');

-- name: TurnByEvent :one
SELECT t.id, t.session_id, t.created_at FROM turns t
JOIN events e ON e.session_id = t.session_id AND e.turn_id = t.id AND e.at >= t.created_at - interval '1 hour'
WHERE t.workspace_id = $1 AND t.key_id = $2 AND t.request_hash = $3 AND e.seq = $4 AND e.seq >= t.start_seq AND t.created_at > now() - interval '2 days';

-- name: TurnClaim :one
UPDATE turns
SET state = 'running', state_at = clock_timestamp(), epoch = $1, node = $2::int, started_at = clock_timestamp(),
    lease_until = clock_timestamp() + make_interval(secs => $3::float8)
WHERE turns.id = $4 AND turns.state = ANY($5::text[])
  AND (SELECT count(*) FROM turns r WHERE r.workspace_id = turns.workspace_id AND r.state = 'running')
    < (SELECT w.max_running FROM workspaces w WHERE w.id = turns.workspace_id)
RETURNING id, session_id, workspace_id, state, error, start_seq, end_seq, epoch, node, lease_until, job_id, halted_at, max_response_seconds, max_turns, active_seconds, max_cost_usd, key_id, scopes, request_hash, prompt, response_schema, secrets, rejected, callback_id, created_at, started_at, finished_at, state_at, told_at;

-- name: TurnClose :one
UPDATE turns
SET state = $1, state_at = clock_timestamp(), error = $2, finished_at = clock_timestamp(), lease_until = NULL, prompt = NULL,
    active_seconds = active_seconds + coalesce(extract(epoch FROM clock_timestamp() - started_at), 0),
    halted_at = CASE WHEN $3::boolean THEN clock_timestamp() END
WHERE id = $4 AND state = ANY($5::text[])
RETURNING id, session_id, workspace_id, state, error, start_seq, end_seq, epoch, node, lease_until, job_id, halted_at, max_response_seconds, max_turns, active_seconds, max_cost_usd, key_id, scopes, request_hash, prompt, response_schema, secrets, rejected, callback_id, created_at, started_at, finished_at, state_at, told_at;

-- name: TurnEndSeq :exec
UPDATE turns SET end_seq = $2 WHERE id = $1;

-- name: TurnEnded :one
SELECT t.id, t.state, extract(epoch FROM clock_timestamp() - t.finished_at)::float8 AS seconds_ago,
       coalesce((SELECT a.id FROM approvals a WHERE a.turn_id = t.id ORDER BY a.seq DESC LIMIT 1),
                '00000000-0000-0000-0000-000000000000')::uuid AS asked
FROM sessions s JOIN turns t ON t.id = s.turn_id
WHERE s.workspace_id = $1 AND s.id = $2 AND s.erased_at IS NULL AND t.finished_at IS NOT NULL;

-- name: TurnGet :one
SELECT id, session_id, workspace_id, state, error, start_seq, end_seq, epoch, node, lease_until, job_id, halted_at, max_response_seconds, max_turns, active_seconds, max_cost_usd, key_id, scopes, request_hash, prompt, response_schema, secrets, rejected, callback_id, created_at, started_at, finished_at, state_at, told_at FROM turns WHERE id = $1;

-- name: TurnHalted :one
UPDATE turns SET halted_at = coalesce(halted_at, clock_timestamp()) WHERE id = $1 AND state = 'canceled' RETURNING session_id;

-- name: TurnInLine :one
SELECT id, created_at FROM turns WHERE workspace_id = $1 AND session_id = $2 AND state = 'lined_up' AND start_seq = $3;

-- name: TurnInsert :one
INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, max_cost_usd, key_id, scopes, request_hash,
                   prompt, response_schema, secrets, rejected, callback_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, clock_timestamp())
RETURNING created_at;

-- name: TurnJob :exec
UPDATE turns SET job_id = $2 WHERE id = $1;

-- name: TurnNext :one
SELECT t.id FROM turns t
WHERE t.session_id = $1 AND t.state = 'lined_up'
  AND NOT EXISTS (SELECT FROM turns a WHERE a.session_id = t.session_id AND a.state IN ('queued', 'running', 'waiting'))
ORDER BY t.start_seq LIMIT 1;

-- name: TurnPark :execrows
UPDATE turns
SET state = 'waiting', state_at = clock_timestamp(), node = NULL, lease_until = NULL, job_id = NULL,
    active_seconds = active_seconds + coalesce(extract(epoch FROM clock_timestamp() - started_at), 0), started_at = NULL
WHERE id = $1 AND epoch = $2 AND state = ANY($3::text[]);

-- name: TurnQueue :execrows
UPDATE turns SET state = 'queued', state_at = clock_timestamp(), job_id = NULL WHERE id = $1 AND state = ANY($2::text[]);

-- name: TurnRequeue :execrows
UPDATE turns
SET state = 'queued', state_at = clock_timestamp(), node = NULL, lease_until = NULL,
    active_seconds = active_seconds + coalesce(extract(epoch FROM least(lease_until, clock_timestamp()) - started_at), 0), started_at = NULL
WHERE id = $1 AND epoch = $2 AND state = ANY($3::text[]);

-- name: TurnRetried :one
SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.workspace_id = $1 AND t.key_id = $2 AND t.request_hash = $3
  AND t.told_at IS NULL
  AND t.created_at > now() - make_interval(secs => $4::float8)
  AND CASE WHEN $5::uuid IS NOT NULL THEN t.session_id = $5::uuid
           ELSE s.caller_id = $6::text END
ORDER BY t.created_at DESC LIMIT 1;

-- name: TurnStartSeq :exec
UPDATE turns SET start_seq = $2 WHERE id = $1;

-- name: TurnTold :exec
UPDATE turns SET told_at = clock_timestamp() WHERE id = $1 AND told_at IS NULL;

-- name: TurnUnplaced :exec
UPDATE turns SET job_id = NULL WHERE turns.id = $1 AND turns.state = 'queued';

-- name: TurnView :one
SELECT t.id, t.session_id, t.workspace_id, t.state, t.error, t.start_seq, t.end_seq, t.epoch, t.node, t.lease_until, t.job_id, t.halted_at, t.max_response_seconds, t.max_turns, t.active_seconds, t.max_cost_usd, t.key_id, t.scopes, t.request_hash, t.prompt, t.response_schema, t.secrets, t.rejected, t.callback_id, t.created_at, t.started_at, t.finished_at, t.state_at, t.told_at, u.id, u.session_id, u.turn_id, u.workspace_id, u.role, u.content, u.label, u.skill, u.status, u.error, u.structured_result, u.attachments, u.tool_calls, u.refs, u.usage, u.first_seq, u.last_seq, u.created_at, u.named, u.failure, m.id, m.session_id, m.turn_id, m.workspace_id, m.role, m.content, m.label, m.skill, m.status, m.error, m.structured_result, m.attachments, m.tool_calls, m.refs, m.usage, m.first_seq, m.last_seq, m.created_at, m.named, m.failure, a.request AS question
FROM turns t
JOIN messages u ON u.turn_id = t.id AND u.role = 'user'
JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
LEFT JOIN approvals a ON a.turn_id = t.id AND a.status = 'pending' AND t.state = 'waiting'
WHERE t.workspace_id = $1 AND t.id = $2;

-- name: TurnViews :many
SELECT t.id, t.session_id, t.workspace_id, t.state, t.error, t.start_seq, t.end_seq, t.epoch, t.node, t.lease_until, t.job_id, t.halted_at, t.max_response_seconds, t.max_turns, t.active_seconds, t.max_cost_usd, t.key_id, t.scopes, t.request_hash, t.prompt, t.response_schema, t.secrets, t.rejected, t.callback_id, t.created_at, t.started_at, t.finished_at, t.state_at, t.told_at, u.id, u.session_id, u.turn_id, u.workspace_id, u.role, u.content, u.label, u.skill, u.status, u.error, u.structured_result, u.attachments, u.tool_calls, u.refs, u.usage, u.first_seq, u.last_seq, u.created_at, u.named, u.failure, m.id, m.session_id, m.turn_id, m.workspace_id, m.role, m.content, m.label, m.skill, m.status, m.error, m.structured_result, m.attachments, m.tool_calls, m.refs, m.usage, m.first_seq, m.last_seq, m.created_at, m.named, m.failure, a.request AS question
FROM turns t
JOIN messages u ON u.turn_id = t.id AND u.role = 'user'
JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
LEFT JOIN approvals a ON a.turn_id = t.id AND a.status = 'pending' AND t.state = 'waiting'
WHERE t.workspace_id = $1
  AND ($2::uuid IS NULL OR t.session_id = $2::uuid)
  AND ($3::text[] IS NULL OR t.state = ANY($3::text[]))
  AND ($4::boolean IS NULL OR (t.epoch > 0) = $4::boolean)
  AND ($5::timestamptz IS NULL OR t.state_at >= $5::timestamptz)
  AND ($6::timestamptz IS NULL OR (t.state_at, t.id) < ($6::timestamptz, $7::uuid))
ORDER BY t.state_at DESC, t.id DESC
LIMIT $8;

-- name: TurnViewsCount :one
SELECT count(*) FROM turns t
WHERE t.workspace_id = $1
  AND ($2::uuid IS NULL OR t.session_id = $2::uuid)
  AND ($3::text[] IS NULL OR t.state = ANY($3::text[]))
  AND ($4::boolean IS NULL OR (t.epoch > 0) = $4::boolean)
  AND ($5::timestamptz IS NULL OR t.state_at >= $5::timestamptz);

-- name: TurnsLinedUp :one
SELECT count(*) FROM turns WHERE session_id = $1 AND state = 'lined_up';

-- name: TurnsPlaceable :many
SELECT t.id, t.session_id
FROM (SELECT DISTINCT q.workspace_id FROM turns q
      WHERE q.state = 'queued' AND q.job_id IS NULL
        AND ($1::uuid IS NULL OR q.workspace_id = $1::uuid)) b
JOIN workspaces w ON w.id = b.workspace_id
CROSS JOIN LATERAL (
    SELECT q.id, q.session_id, row_number() OVER (ORDER BY q.created_at) AS n
    FROM turns q WHERE q.workspace_id = w.id AND q.state = 'queued' AND q.job_id IS NULL
    ORDER BY q.created_at
    LIMIT greatest(0, w.max_running - (SELECT count(*) FROM turns r WHERE r.workspace_id = w.id AND r.state = 'running'))
) t ORDER BY t.n LIMIT 100;

-- name: TurnsQueued :many
SELECT id, session_id, epoch, job_id::bigint AS job_id FROM turns
WHERE state = 'queued' AND job_id IS NOT NULL AND created_at < clock_timestamp() - interval '1 second'
ORDER BY created_at LIMIT 500;

-- name: TurnsRunning :many
SELECT id, session_id, epoch, coalesce(node, 0)::int AS node, coalesce(lease_until < clock_timestamp(), true)::boolean AS expired
FROM turns WHERE state = 'running';

-- name: WorkspaceQueue :exec
SELECT pg_advisory_xact_lock(20562, hashtext($1::uuid::text));

-- name: WorkspaceRoom :one
SELECT (w.max_running - (SELECT count(*) FROM turns r WHERE r.workspace_id = w.id AND r.state = 'running'))::bigint AS room
FROM workspaces w WHERE w.id = $1;

-- name: CredentialFind :one
SELECT workspace_id, name, version, allowed_hosts, in_query, in_body, allow_http, value, key_id, created_at, updated_at, updated_by, removed_at FROM credentials WHERE workspace_id = $1 AND name = $2 AND removed_at IS NULL FOR UPDATE;

-- name: CredentialLock :one
INSERT INTO credentials (workspace_id, name, removed_at) VALUES ($1, $2, now())
ON CONFLICT (workspace_id, name) DO UPDATE SET name = excluded.name
RETURNING workspace_id, name, version, allowed_hosts, in_query, in_body, allow_http, value, key_id, created_at, updated_at, updated_by, removed_at;

-- name: CredentialNote :exec
INSERT INTO credential_uses (workspace_id, name, version, what, allowed_hosts, by) VALUES ($1, $2, $3, $4, $5, $6);

-- name: CredentialPut :one
UPDATE credentials
SET version = $3, allowed_hosts = $4, in_query = $5, in_body = $6, allow_http = $7, value = $8,
    updated_by = $9, updated_at = now(), removed_at = NULL
WHERE workspace_id = $1 AND name = $2
RETURNING workspace_id, name, version, allowed_hosts, in_query, in_body, allow_http, value, key_id, created_at, updated_at, updated_by, removed_at;

-- name: CredentialRemove :one
UPDATE credentials
SET version = version + 1, value = NULL, updated_by = $3, updated_at = now(), removed_at = now()
WHERE workspace_id = $1 AND name = $2 AND removed_at IS NULL
RETURNING workspace_id, name, version, allowed_hosts, in_query, in_body, allow_http, value, key_id, created_at, updated_at, updated_by, removed_at;

-- name: Credentials :many
SELECT workspace_id, name, version, allowed_hosts, in_query, in_body, allow_http, value, key_id, created_at, updated_at, updated_by, removed_at FROM credentials WHERE workspace_id = $1 AND removed_at IS NULL ORDER BY name;

-- name: VaultKeyAdd :exec
INSERT INTO vault_keys (id, proof) VALUES ($1, $2);

-- name: VaultKeys :many
SELECT id, proof FROM vault_keys ORDER BY created_at, id;

-- name: VaultKeysLock :exec
LOCK TABLE vault_keys IN SHARE ROW EXCLUSIVE MODE;

-- name: VaultKeysRetire :many
DELETE FROM vault_keys WHERE id <> $1 RETURNING id;

-- name: DocumentCreate :one
INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, path) DO NOTHING
RETURNING version;

-- name: DocumentDelete :execrows
DELETE FROM documents WHERE workspace_id = $1 AND path = $2;

-- name: DocumentGet :one
SELECT workspace_id, path, title, content, version, created_at, updated_at FROM documents WHERE workspace_id = $1 AND path = $2;

-- name: DocumentPut :one
INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, path) DO UPDATE
SET title = excluded.title, content = excluded.content, version = documents.version + 1, updated_at = now()
RETURNING path, title, version, created_at, updated_at;

-- name: DocumentReplace :one
UPDATE documents SET title = $3, content = $4, version = version + 1, updated_at = now()
WHERE workspace_id = $1 AND path = $2 AND version = $5
RETURNING version;

-- name: DocumentsAll :many
SELECT path, title, content, version FROM documents WHERE workspace_id = $1 ORDER BY path;

-- name: DocumentsList :many
SELECT path, title, length(content)::int AS size, version, updated_at FROM documents
WHERE workspace_id = $1 AND starts_with(path, $2::text)
ORDER BY path;

-- name: DocumentsOthers :one
SELECT count(*)::bigint AS documents, coalesce(sum(octet_length(content)), 0)::bigint AS bytes
FROM documents WHERE workspace_id = $1 AND path <> $2;

-- name: DocumentsVersion :one
SELECT count(*)::bigint AS documents, coalesce(sum(version), 0)::bigint AS versions, coalesce(max(updated_at), 'epoch')::timestamptz AS newest
FROM documents WHERE workspace_id = $1;

-- name: WorkBlobBegin :exec
INSERT INTO work_blobs (id, workspace_id) VALUES ($1, $2);

-- name: WorkBlobDrop :exec
DELETE FROM work_blobs WHERE id = $1;

-- name: WorkBlobEnd :execrows
UPDATE work_blobs SET sha256 = $1, size = $2, loose_at = now() WHERE id = $3;

-- name: WorkBlobsDrop :execrows
DELETE FROM work_blobs b
WHERE b.id = ANY($1::uuid[]) AND NOT EXISTS (SELECT FROM work_files f WHERE f.workspace_id = b.workspace_id AND f.sha256 = b.sha256);

-- name: WorkBlobsKeep :exec
UPDATE work_blobs b SET loose_at = NULL
WHERE b.id = ANY($1::uuid[]) AND EXISTS (SELECT FROM work_files f WHERE f.workspace_id = b.workspace_id AND f.sha256 = b.sha256);

-- name: WorkBlobsLock :many
SELECT b.sha256 FROM work_blobs b
WHERE b.workspace_id = $1 AND b.sha256 = ANY($2::bytea[])
ORDER BY b.sha256
FOR NO KEY UPDATE;

-- name: WorkBlobsLoose :many
SELECT b.id FROM work_blobs b
WHERE b.loose_at < now() - make_interval(secs => $1::float8)
ORDER BY b.loose_at
LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: WorkBlobsLoosen :exec
UPDATE work_blobs SET loose_at = now() WHERE workspace_id = $1 AND sha256 = ANY($2::bytea[]) AND loose_at IS NULL;

-- name: WorkBlobsNamed :exec
UPDATE work_blobs SET loose_at = NULL WHERE workspace_id = $1 AND sha256 = ANY($2::bytea[]) AND loose_at IS NOT NULL;

-- name: WorkBlobsOfSession :many
SELECT b.id FROM work_blobs b
WHERE b.workspace_id = $1 AND b.sha256 IN (SELECT f.sha256 FROM work_files f WHERE f.workspace_id = $1 AND f.session_id = $2)
ORDER BY b.sha256
FOR UPDATE;

-- name: WorkBlobsPut :exec
WITH fresh AS (
    INSERT INTO work_blobs (id, workspace_id, sha256, size)
    SELECT n.id, $1, n.sha256, octet_length(n.data)
    FROM (SELECT unnest($2::uuid[]) AS id, unnest($4::bytea[]) AS sha256, unnest($3::bytea[]) AS data) n
    ON CONFLICT (workspace_id, sha256) DO NOTHING
    RETURNING id
)
INSERT INTO work_chunks (blob_id, n, data)
SELECT n.id, 0, n.data
FROM (SELECT unnest($2::uuid[]) AS id, unnest($3::bytea[]) AS data) n
JOIN fresh ON fresh.id = n.id;

-- name: WorkBlobsThere :many
SELECT b.sha256
FROM (SELECT unnest($2::bytea[]) AS sha256) n
CROSS JOIN LATERAL (SELECT o.sha256 FROM work_blobs o WHERE o.workspace_id = $1 AND o.sha256 = n.sha256 LIMIT 1) b;

-- name: WorkBlobsTouch :exec
UPDATE work_blobs SET loose_at = now()
WHERE work_blobs.id IN (
    SELECT b.id FROM work_blobs b
    WHERE b.workspace_id = $1 AND b.sha256 = ANY($2::bytea[]) AND b.loose_at < now() - interval '5 minutes'
    FOR NO KEY UPDATE SKIP LOCKED
);

-- name: WorkChunkPut :execrows
WITH b AS (UPDATE work_blobs SET loose_at = now() WHERE work_blobs.id = $1 RETURNING work_blobs.id)
INSERT INTO work_chunks (blob_id, n, data) SELECT b.id, $2, $3 FROM b;

-- name: WorkChunks :many
SELECT data FROM work_chunks WHERE blob_id = $1 AND n >= $2 ORDER BY n LIMIT $3;

-- name: WorkChunksFirst :many
SELECT blob_id, data FROM work_chunks WHERE blob_id = ANY($1::uuid[]) AND n = 0;

-- name: WorkFiles :many
SELECT f.path, f.kind, f.executable, f.size, f.sha256, f.target, b.id AS blob_id
FROM work_files f LEFT JOIN work_blobs b ON b.workspace_id = f.workspace_id AND b.sha256 = f.sha256
WHERE f.workspace_id = $1 AND f.session_id = $2
  AND ($3::bytea IS NULL OR f.path_sha256 = sha256($3::bytea))
ORDER BY f.path;

-- name: WorkFilesDrop :exec
DELETE FROM work_files f
WHERE f.workspace_id = $1 AND f.session_id = $2
  AND f.path_sha256 IN (SELECT sha256(unnest($3::bytea[])));

-- name: WorkFilesPut :exec
INSERT INTO work_files (session_id, workspace_id, path, kind, executable, size, sha256, target)
SELECT $1, $2, n.path, n.kind, n.executable, n.size, nullif(n.sha256, ''), nullif(n.target, '')
FROM (SELECT unnest($3::bytea[]) AS path, unnest($4::text[]) AS kind, unnest($5::boolean[]) AS executable,
             unnest($6::bigint[]) AS size, unnest($7::bytea[]) AS sha256, unnest($8::bytea[]) AS target) n;

-- name: WorkdirDrop :exec
DELETE FROM workdirs WHERE workspace_id = $1 AND session_id = $2;

-- name: WorkdirLock :exec
SELECT FROM workdirs WHERE workspace_id = $1 AND session_id = $2 FOR UPDATE;

-- name: WorkdirOthers :one
SELECT coalesce(sum(bytes), 0)::bigint FROM workdirs WHERE workspace_id = $1 AND session_id <> $2;

-- name: WorkdirSave :one
UPDATE workdirs SET version = version + 1, files = $1, bytes = $2, updated_at = now()
WHERE workspace_id = $3 AND session_id = $4 AND epoch = $5
RETURNING version;

-- name: WorkdirTake :one
INSERT INTO workdirs (session_id, workspace_id, epoch)
SELECT s.id, s.workspace_id, $1::bigint FROM sessions s
WHERE s.workspace_id = $2 AND s.id = $3 AND s.erased_at IS NULL
FOR SHARE
ON CONFLICT (session_id) DO UPDATE SET epoch = EXCLUDED.epoch WHERE workdirs.epoch <= EXCLUDED.epoch
RETURNING version;

-- name: WorkdirVersion :one
SELECT version FROM workdirs WHERE workspace_id = $1 AND session_id = $2;

-- name: WorkspaceByID :one
SELECT id, slug, name, instructions, model, max_response_seconds, max_turns, max_running, history_tokens, created_at, updated_at, messages_per_minute, calls_per_minute, open_streams FROM workspaces WHERE id = $1;

-- name: WorkspaceBySlug :one
SELECT id, slug, name, instructions, model, max_response_seconds, max_turns, max_running, history_tokens, created_at, updated_at, messages_per_minute, calls_per_minute, open_streams FROM workspaces WHERE slug = $1;

-- name: WorkspaceInsert :one
INSERT INTO workspaces (id, slug, name, instructions, model) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (slug) DO NOTHING
RETURNING id, slug, name, instructions, model, max_response_seconds, max_turns, max_running, history_tokens, created_at, updated_at, messages_per_minute, calls_per_minute, open_streams;

-- name: WorkspaceUpdate :one
UPDATE workspaces
SET name = COALESCE($1, name),
    instructions = COALESCE($2, instructions),
    model = NULLIF(COALESCE($3, model), ''),
    max_response_seconds = COALESCE($4, max_response_seconds),
    max_turns = COALESCE($5, max_turns),
    max_running = COALESCE($6, max_running),
    history_tokens = COALESCE($7, history_tokens),
    messages_per_minute = NULLIF(COALESCE($8, messages_per_minute), -1),
    calls_per_minute = NULLIF(COALESCE($9, calls_per_minute), -1),
    open_streams = NULLIF(COALESCE($10, open_streams), -1),
    updated_at = now()
WHERE id = $11
RETURNING id, slug, name, instructions, model, max_response_seconds, max_turns, max_running, history_tokens, created_at, updated_at, messages_per_minute, calls_per_minute, open_streams;

-- name: WorkspacesList :many
SELECT id, slug, name, instructions, model, max_response_seconds, max_turns, max_running, history_tokens, created_at, updated_at, messages_per_minute, calls_per_minute, open_streams FROM workspaces ORDER BY slug;
