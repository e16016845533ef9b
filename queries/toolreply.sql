-- name: ToolRepliesAwait :exec
-- ToolRepliesAwait lets the results of calls be posted; approval_id is the question that waits for
-- them, null if the turn does not wait yet.
INSERT INTO tool_replies (workspace_id, tool_use_id, session_id, turn_id, kind, approval_id)
SELECT sqlc.arg(workspace_id), unnest(sqlc.arg(ids)::text[]), sqlc.arg(session_id), sqlc.arg(turn_id), sqlc.arg(kind), sqlc.narg(approval_id)::uuid
ON CONFLICT (workspace_id, tool_use_id) DO UPDATE SET approval_id = coalesce(excluded.approval_id, tool_replies.approval_id)
WHERE tool_replies.turn_id = excluded.turn_id AND tool_replies.kind = excluded.kind;

-- name: ToolRepliesOpen :many
-- ToolRepliesOpen lists the calls of a question that have no result yet.
SELECT tool_use_id FROM tool_replies WHERE approval_id = sqlc.arg(approval_id)::uuid AND sha256 IS NULL ORDER BY tool_use_id;

-- name: ToolRepliesGet :many
-- ToolRepliesGet reads calls with their turns and with the questions that wait for them.
SELECT r.tool_use_id, r.session_id, r.turn_id, r.kind, r.sha256, r.approval_id, t.state, t.created_at,
       coalesce(a.status, '')::text AS asked, coalesce(a.status = 'pending' AND a.expires_at <= clock_timestamp(), false)::boolean AS overdue
FROM tool_replies r JOIN turns t ON t.id = r.turn_id LEFT JOIN approvals a ON a.id = r.approval_id
WHERE r.workspace_id = $1 AND r.tool_use_id = ANY(sqlc.arg(ids)::text[]);

-- name: ToolReplyStore :execrows
-- ToolReplyStore records the first result of a call.
UPDATE tool_replies SET sha256 = sqlc.arg(sha256)::bytea, key_id = sqlc.narg(key_id), replied_at = clock_timestamp()
WHERE workspace_id = sqlc.arg(workspace_id) AND tool_use_id = sqlc.arg(tool_use_id) AND sha256 IS NULL;

-- name: ToolRepliesErase :exec
DELETE FROM tool_replies WHERE session_id = $1;

-- name: ToolRepliesGiven :many
-- ToolRepliesGiven lists the calls of a session whose results were posted, and by which keys.
SELECT tool_use_id, coalesce(key_id, '')::text AS key_id, replied_at::timestamptz AS replied_at FROM tool_replies
WHERE workspace_id = $1 AND session_id = $2 AND sha256 IS NOT NULL;
