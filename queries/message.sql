-- name: MessageInsert :exec
INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, label, skill, named, status, first_seq, last_seq, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_timestamp());

-- name: MessageClose :exec
-- MessageClose stores what a turn came to. The answer is the concatenation of the
-- deltas, made where they are.
UPDATE messages m
SET failure = sqlc.narg(failure), content = (SELECT coalesce(string_agg(e.data->>'text', '' ORDER BY e.seq), '') FROM events e
               WHERE e.session_id = m.session_id AND e.turn_id = m.turn_id AND e.at >= sqlc.arg(since)::timestamptz AND e.delta),
    status = sqlc.arg(status), error = sqlc.narg(error), tool_calls = sqlc.arg(tool_calls), refs = sqlc.arg(refs),
    structured_result = sqlc.narg(structured_result), attachments = sqlc.narg(attachments),
    usage = sqlc.narg(usage), last_seq = sqlc.arg(last_seq)
WHERE m.turn_id = sqlc.arg(turn_id) AND m.role = 'assistant';

-- name: MessageAnswer :one
-- MessageAnswer is a turn and the agent's message of it.
SELECT sqlc.embed(t), sqlc.embed(m) FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
WHERE t.workspace_id = $1 AND t.id = $2;

-- name: MessagesPage :many
-- MessagesPage is one page of a session's messages; first_seq orders them as they
-- were committed, whatever the clocks of the replicas say.
SELECT * FROM messages
WHERE session_id = $1 AND first_seq > sqlc.arg(after)::bigint
ORDER BY first_seq LIMIT sqlc.arg(n);

-- name: MessagesPageDesc :many
-- MessagesPageDesc is MessagesPage, newest first.
SELECT * FROM messages
WHERE session_id = $1 AND first_seq < sqlc.arg(before)::bigint
ORDER BY first_seq DESC LIMIT sqlc.arg(n);

-- name: MessagesBefore :many
-- MessagesBefore is a session's history before a turn, newest first.
SELECT role, content, structured_result FROM messages
WHERE session_id = $1 AND turn_id <> sqlc.arg(turn_id)::uuid AND first_seq < sqlc.arg(before)::bigint AND content IS NOT NULL
ORDER BY first_seq DESC LIMIT sqlc.arg(n);
