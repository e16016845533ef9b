-- name: MessageInsert :exec
INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, label, skill, status, first_seq, last_seq, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp());

-- name: MessageClose :exec
UPDATE messages
SET content = sqlc.narg(content), status = sqlc.arg(status), error = sqlc.narg(error), tool_calls = sqlc.arg(tool_calls), refs = sqlc.arg(refs),
    usage = sqlc.narg(usage), structured_result = sqlc.narg(structured_result), last_seq = sqlc.arg(last_seq)
WHERE turn_id = sqlc.arg(turn_id) AND role = 'assistant';

-- name: MessageAnswer :one
-- MessageAnswer is the agent's message of a turn.
SELECT * FROM messages WHERE turn_id = $1 AND role = 'assistant';

-- name: MessagesPage :many
SELECT * FROM messages
WHERE session_id = $1 AND id > sqlc.arg(after)::uuid
ORDER BY id LIMIT sqlc.arg(n);

-- name: MessagesPageDesc :many
SELECT * FROM messages
WHERE session_id = $1 AND id < sqlc.arg(before)::uuid
ORDER BY id DESC LIMIT sqlc.arg(n);

-- name: MessagesBefore :many
-- MessagesBefore is a session's history before a turn, newest first.
SELECT role, content, label, status FROM messages
WHERE session_id = $1 AND turn_id <> $2 AND content IS NOT NULL
ORDER BY id DESC LIMIT $3;
