-- name: ApprovalInsert :one
-- ApprovalInsert asks; the clock that ends the wait is PostgreSQL's.
INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + make_interval(secs => sqlc.arg(window_seconds)::float8))
RETURNING expires_at;

-- name: ApprovalRequest :exec
-- ApprovalRequest stores what the stream was shown, and where.
UPDATE approvals SET request = $2, seq = $3 WHERE id = $1;

-- name: ApprovalAsked :one
-- ApprovalAsked is the question that a turn put in one event.
SELECT request FROM approvals WHERE turn_id = $1 AND seq = $2;

-- name: ApprovalGet :one
SELECT sqlc.embed(a), (a.status = 'pending' AND a.expires_at <= clock_timestamp())::boolean AS overdue,
       greatest(0, extract(epoch FROM a.expires_at - clock_timestamp()))::float8 AS seconds_left
FROM approvals a WHERE a.workspace_id = $1 AND a.id = $2;

-- name: ApprovalSettle :exec
-- ApprovalSettle waits for answers that are being committed in a session: an answer that
-- was in time may commit when it is over.
SELECT id FROM sessions WHERE id = $1 FOR SHARE;

-- name: ApprovalDecide :one
-- ApprovalDecide answers, once and in time: every other call gets no row.
UPDATE approvals
SET status = sqlc.arg(status), decided_at = clock_timestamp(), decided_by = sqlc.arg(decided_by),
    actor = sqlc.narg(actor), reason = sqlc.narg(reason), pattern = sqlc.narg(pattern)
WHERE id = sqlc.arg(id) AND status = 'pending' AND expires_at > clock_timestamp()
RETURNING decided_at;

-- name: ApprovalExpire :execrows
-- ApprovalExpire answers an overdue approval. decided_at is the end of its time, not the time of
-- the call.
UPDATE approvals SET status = 'expired', decided_at = expires_at
WHERE id = $1 AND status = 'pending' AND expires_at <= clock_timestamp();

-- name: ApprovalsCancel :exec
-- ApprovalsCancel closes the question of a turn that has ended, unless its time was
-- over before.
UPDATE approvals
SET status = CASE WHEN expires_at > clock_timestamp() THEN 'canceled' ELSE 'expired' END,
    decided_at = least(expires_at, clock_timestamp())
WHERE turn_id = $1 AND status = 'pending';

-- name: ApprovalsOverdue :many
-- ApprovalsOverdue finds approvals without an answer in time.
SELECT id, session_id FROM approvals WHERE status = 'pending' AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT 100;

-- name: ApprovalPending :one
-- ApprovalPending is what a turn waits for.
SELECT id, kind, expires_at FROM approvals WHERE turn_id = $1 AND status = 'pending';

-- name: ApprovalsPage :many
-- ApprovalsPage is one page of the inbox, newest first; programs answer the other kinds. What is overdue counts as expired, whether or
-- not anything has noticed. The conditions on the status are those of an index.
SELECT sqlc.embed(a), (a.status = 'pending' AND a.expires_at <= clock_timestamp())::boolean AS overdue,
       greatest(0, extract(epoch FROM a.expires_at - clock_timestamp()))::float8 AS seconds_left
FROM approvals a
WHERE a.workspace_id = sqlc.arg(workspace_id) AND a.kind IN ('approval', 'secret')
  AND (sqlc.narg(status)::text IS NULL OR a.status = sqlc.narg(status)::text
       OR sqlc.narg(status)::text = 'expired' AND a.status = 'pending' AND a.expires_at <= clock_timestamp())
  AND (sqlc.narg(status)::text IS DISTINCT FROM 'pending' OR a.expires_at > clock_timestamp())
  AND (sqlc.narg(session_id)::uuid IS NULL OR a.session_id = sqlc.narg(session_id)::uuid)
  AND (sqlc.narg(before_at)::timestamptz IS NULL OR (a.created_at, a.id) < (sqlc.narg(before_at)::timestamptz, sqlc.arg(before_id)::uuid))
ORDER BY a.created_at DESC, a.id DESC
LIMIT sqlc.arg(n);

-- name: ApprovalCoded :one
-- ApprovalCoded is the approval of a session that has a code, the last 30 bits of its id. One that
-- waits comes before one that was decided.
SELECT a.id FROM approvals a
WHERE a.workspace_id = $1 AND a.session_id = $2 AND a.request IS NOT NULL
  AND ('x' || right(a.id::text, 8))::bit(32)::bigint & 1073741823 = sqlc.arg(code)::bigint
ORDER BY a.status = 'pending' DESC, a.created_at DESC LIMIT 1;

-- name: ApprovalsCoded :many
-- ApprovalsCoded are the approvals of a day with a code, in the sessions without a caller_id, for
-- messages of one API key.
SELECT a.id FROM approvals a JOIN turns t ON t.id = a.turn_id JOIN sessions s ON s.id = a.session_id
WHERE a.workspace_id = $1 AND a.created_at > clock_timestamp() - interval '1 day' AND a.request IS NOT NULL
  AND t.key_id = sqlc.arg(key)::text AND s.caller_id IS NULL
  AND ('x' || right(a.id::text, 8))::bit(32)::bigint & 1073741823 = sqlc.arg(code)::bigint
LIMIT 2;

-- name: ApprovalSender :one
-- ApprovalSender is who sent the message that an approval belongs to: an API key, and the caller_id of
-- the session.
SELECT coalesce(t.key_id, '') AS key, s.caller_id
FROM approvals a JOIN turns t ON t.id = a.turn_id JOIN sessions s ON s.id = a.session_id
WHERE a.workspace_id = $1 AND a.id = $2 AND a.request IS NOT NULL;

-- name: ApprovalRules :one
-- ApprovalRules is what a workspace requires of an approval, and the API key that sent the message
-- of the turn.
SELECT w.separate_approver, w.admin_patterns, coalesce(t.key_id, '') AS sender
FROM turns t JOIN workspaces w ON w.id = t.workspace_id WHERE t.id = $1;

-- name: ApproverIsSameMember :one
-- ApproverIsSameMember reports whether two ids belong to one member: each is that of an API key or of
-- a member, and a member's personal tokens are keys.
SELECT coalesce((SELECT k.member_id FROM api_keys k WHERE k.workspace_id = sqlc.arg(workspace_id) AND k.id = sqlc.arg(sender)::text), sqlc.arg(sender)::text)
     = coalesce((SELECT k.member_id FROM api_keys k WHERE k.workspace_id = sqlc.arg(workspace_id) AND k.id = sqlc.arg(approver)::text), sqlc.arg(approver)::text)
       AS same;
