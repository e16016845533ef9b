-- name: SetupKeep :exec
-- SetupKeep stores a setup, or that it is still in use.
INSERT INTO turn_setups (workspace_id, sha256, content) VALUES ($1, $2, $3)
ON CONFLICT (workspace_id, sha256) DO UPDATE SET used_at = clock_timestamp() WHERE turn_setups.used_at < clock_timestamp() - interval '1 day';

-- name: SetupGet :one
SELECT content FROM turn_setups WHERE workspace_id = $1 AND sha256 = $2;

-- name: SetupsForget :execrows
-- SetupsForget removes the setups that no event in the log can name.
DELETE FROM turn_setups WHERE used_at < clock_timestamp() - make_interval(secs => sqlc.arg(audit_seconds)::float8) - interval '2 days';

-- name: TurnNth :one
-- TurnNth is the n-th turn of a session, from 1, or its newest if n is 0.
SELECT * FROM turns WHERE session_id = $1 AND workspace_id = $2
ORDER BY CASE WHEN sqlc.arg(n)::int = 0 THEN start_seq END DESC, start_seq
LIMIT 1 OFFSET greatest(sqlc.arg(n)::int - 1, 0);
