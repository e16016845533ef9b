-- name: SessionLock :one
-- SessionLock takes the lock that every write to a session holds.
SELECT * FROM sessions WHERE id = $1 FOR NO KEY UPDATE;

-- name: SessionTryLock :one
-- SessionTryLock is SessionLock without a wait: no row when another transaction holds the lock.
SELECT * FROM sessions WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED;

-- name: SessionInsert :one
-- SessionInsert makes a session; for a caller that has one already it returns no row.
INSERT INTO sessions (id, workspace_id, caller_id, title) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, caller_id) WHERE caller_id IS NOT NULL DO NOTHING
RETURNING id;

-- name: SessionByCaller :one
SELECT id FROM sessions WHERE workspace_id = $1 AND caller_id = sqlc.arg(caller_id)::text;

-- name: SessionExists :one
SELECT EXISTS (SELECT FROM sessions WHERE workspace_id = $1 AND id = $2);

-- name: SessionHead :one
-- SessionHead is what a reader needs to know before it attaches: the newest event,
-- the newest turn, and the end of the newest one that cannot be replayed any more.
-- Turns of a session end in the order in which they were created.
SELECT s.id, s.last_seq, s.created_at, s.erased_at, t.id AS turn_id, t.state, t.start_seq, t.end_seq, t.created_at AS turn_created_at,
       t.error,
       coalesce((SELECT o.end_seq FROM turns o
                 WHERE o.session_id = s.id AND o.finished_at < now() - make_interval(secs => sqlc.arg(replay_seconds)::float8)
                 ORDER BY o.created_at DESC LIMIT 1), 0)::bigint AS gone_seq
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
WHERE s.workspace_id = $1 AND s.id = $2;

-- name: SessionsSeq :many
-- SessionsSeq answers the once-a-second question whether a wake-up was lost.
SELECT id, last_seq FROM sessions WHERE id = ANY(sqlc.arg(ids)::uuid[]);

-- name: SessionAdvance :exec
-- SessionAdvance moves the head of the log; the caller holds the lock.
UPDATE sessions SET last_seq = $2, last_ord = $3 WHERE id = $1;

-- name: SessionRaise :one
-- SessionRaise moves the fence: workers of older epochs write nothing more. After a failover
-- or a restore the new epoch is above all those of the lost timeline, whose workers may still run.
UPDATE sessions SET epoch = greatest(epoch, coalesce((SELECT fence FROM lineage), 0)) + 1 WHERE id = $1 RETURNING epoch;

-- name: SessionTurn :exec
-- SessionTurn names the turn that is in progress now.
UPDATE sessions SET turn_id = $2 WHERE id = $1;

-- name: SessionBegin :exec
UPDATE sessions
SET message_count = message_count + 2, updated_at = clock_timestamp(),
    title = CASE WHEN title = '' THEN sqlc.arg(title)::text ELSE title END
WHERE id = $1;

-- name: SessionEnd :exec
UPDATE sessions
SET updated_at = clock_timestamp(),
    input_tokens = input_tokens + sqlc.arg(input)::bigint,
    output_tokens = output_tokens + sqlc.arg(output)::bigint,
    cost_usd = CASE WHEN sqlc.narg(cost)::numeric IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + sqlc.narg(cost)::numeric END
WHERE id = $1;

-- name: SessionsPage :many
-- SessionsPage is one page of the list, newest first: keyset on (updated_at, id). Sessions
-- in progress are few, and found by the index of their turns.
SELECT s.*, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = sqlc.arg(workspace_id)
  AND (sqlc.narg(caller_id)::text IS NULL OR s.caller_id = sqlc.narg(caller_id)::text)
  AND (sqlc.narg(created_after)::timestamptz IS NULL OR s.created_at > sqlc.narg(created_after)::timestamptz)
  AND (sqlc.narg(status)::text IS NULL OR sqlc.narg(status)::text =
       CASE WHEN t.state IS NULL THEN 'not_started' WHEN t.state IN ('queued', 'running', 'waiting') THEN 'thinking' ELSE 'completed' END)
  AND (sqlc.narg(status)::text IS DISTINCT FROM 'thinking' OR t.state IN ('queued', 'running', 'waiting'))
  AND (sqlc.narg(before_at)::timestamptz IS NULL OR (s.updated_at, s.id) < (sqlc.narg(before_at)::timestamptz, sqlc.arg(before_id)::uuid))
ORDER BY s.updated_at DESC, s.id DESC
LIMIT sqlc.arg(n);

-- name: SessionSummary :one
-- SessionSummary is one session as the list shows it.
SELECT s.*, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = sqlc.arg(workspace_id) AND s.id = sqlc.arg(id);

-- name: SessionsPageAsc :many
-- SessionsPageAsc is SessionsPage, oldest first.
SELECT s.*, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind, a.expires_at AS approval_expires_at
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()
WHERE s.workspace_id = sqlc.arg(workspace_id)
  AND (sqlc.narg(caller_id)::text IS NULL OR s.caller_id = sqlc.narg(caller_id)::text)
  AND (sqlc.narg(created_after)::timestamptz IS NULL OR s.created_at > sqlc.narg(created_after)::timestamptz)
  AND (sqlc.narg(status)::text IS NULL OR sqlc.narg(status)::text =
       CASE WHEN t.state IS NULL THEN 'not_started' WHEN t.state IN ('queued', 'running', 'waiting') THEN 'thinking' ELSE 'completed' END)
  AND (sqlc.narg(status)::text IS DISTINCT FROM 'thinking' OR t.state IN ('queued', 'running', 'waiting'))
  AND (sqlc.narg(after_at)::timestamptz IS NULL OR (s.updated_at, s.id) > (sqlc.narg(after_at)::timestamptz, sqlc.arg(after_id)::uuid))
ORDER BY s.updated_at, s.id
LIMIT sqlc.arg(n);
