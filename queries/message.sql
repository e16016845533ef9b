-- name: MessageClose :exec
-- MessageClose stores the result of a turn. The content is the concatenation of the deltas, built
-- in the database. replies are the seqs of the turn's replies, in order: each ends a step, and
-- output_at is where the text of the last step begins.
UPDATE messages m
SET failure = sqlc.narg(failure), content = said.content, output_at = said.output_at,
    status = sqlc.arg(status), error = sqlc.narg(error), tool_calls = sqlc.arg(tool_calls), refs = sqlc.arg(refs),
    structured_result = sqlc.narg(structured_result), attachments = sqlc.narg(attachments),
    usage = sqlc.narg(usage), last_seq = sqlc.arg(last_seq)
FROM (
    SELECT coalesce(string_agg(d.text, '' ORDER BY d.seq), '') AS content,
           coalesce(sum(octet_length(d.text)) FILTER (WHERE d.step < d.last_step), 0) AS output_at
    FROM (
        SELECT s.seq, s.text, s.step, max(s.step) OVER () AS last_step
        FROM (
            SELECT e.seq, e.data->>'text' AS text, width_bucket(e.seq, sqlc.arg(replies)::bigint[]) AS step
            FROM events e
            WHERE e.session_id = sqlc.arg(session_id) AND e.turn_id = sqlc.arg(turn_id) AND e.at >= sqlc.arg(since)::timestamptz AND e.delta
        ) s
    ) d
) said
WHERE m.turn_id = sqlc.arg(turn_id) AND m.role = 'assistant';

-- name: MessageAnswer :one
-- MessageAnswer is a turn and the agent's message of it.
SELECT sqlc.embed(t), sqlc.embed(m) FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
WHERE t.workspace_id = $1 AND t.id = $2;

-- name: MessagesPage :many
-- MessagesPage is one page of a session's messages; first_seq orders them as they
-- were committed, independent of the clocks of the replicas.
SELECT * FROM messages
WHERE session_id = $1 AND first_seq > sqlc.arg(after)::bigint
ORDER BY first_seq LIMIT sqlc.arg(n);

-- name: MessagesPageDesc :many
-- MessagesPageDesc is MessagesPage, newest first.
SELECT * FROM messages
WHERE session_id = $1 AND first_seq < sqlc.arg(before)::bigint
ORDER BY first_seq DESC LIMIT sqlc.arg(n);

-- name: MessagesBefore :many
-- MessagesBefore is a session's history before a turn, newest first. The last row can be what the
-- caller supplied when the session began: one of its first events.
SELECT p.role, p.content, p.data FROM (
    (SELECT m.role, m.content, m.structured_result AS data FROM messages m
     WHERE m.session_id = sqlc.arg(session_id)::uuid AND m.turn_id <> sqlc.arg(turn_id)::uuid AND m.first_seq < sqlc.arg(before)::bigint AND m.content IS NOT NULL
     ORDER BY m.first_seq DESC LIMIT sqlc.arg(n))
    UNION ALL
    (SELECT 'supplied', '', e.data FROM sessions s JOIN events e ON e.session_id = s.id
     WHERE s.id = sqlc.arg(session_id)::uuid AND e.kind = 'supplied' AND e.ord <= 4 AND NOT e.delta AND e.turn_id <> sqlc.arg(turn_id)::uuid
       AND e.at >= s.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8) AND e.at < s.created_at + interval '1 day')
) p;
