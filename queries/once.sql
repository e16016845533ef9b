-- name: AnswerLock :exec
-- AnswerLock lets the requests under one Idempotency-Key pass one at a time.
SELECT pg_advisory_xact_lock(20563, hashtext(concat_ws('/', sqlc.arg(workspace_id)::uuid, sqlc.arg(route)::text, sqlc.arg(key)::text)));

-- name: AnswerGet :one
SELECT a.hash, a.status, a.answer, a.key_id FROM idempotent_answers a
WHERE a.workspace_id = $1 AND a.route = $2 AND a.key = $3 AND a.created_at > now() - interval '24 hours';

-- name: AnswerPut :exec
INSERT INTO idempotent_answers (workspace_id, route, key, hash, status, answer, key_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (workspace_id, route, key) DO UPDATE
SET hash = excluded.hash, status = excluded.status, answer = excluded.answer, key_id = excluded.key_id, created_at = now();

-- name: AnswersPurge :execrows
-- AnswersPurge removes some of the answers that are a day old.
DELETE FROM idempotent_answers WHERE (workspace_id, route, key) IN (
    SELECT a.workspace_id, a.route, a.key FROM idempotent_answers a
    WHERE a.created_at < now() - interval '24 hours'
    ORDER BY a.created_at LIMIT sqlc.arg(n) FOR UPDATE SKIP LOCKED
);
