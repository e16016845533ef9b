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
-- MessageAnswer is a turn and the agent's message of it, and for a turn that failed the sentence of
-- its error.
SELECT sqlc.embed(t), sqlc.embed(m), coalesce(CASE WHEN m.error IS NOT NULL THEN (
    SELECT e.data->>'message' FROM events e
    WHERE e.session_id = t.session_id AND e.turn_id = t.id AND e.kind = 'error' AND e.seq >= t.start_seq
      AND e.at >= t.created_at - interval '1 hour'
    ORDER BY e.seq DESC LIMIT 1) END, '')::text AS error_message
FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
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

-- name: HistoryBefore :many
-- HistoryBefore is a session's history before a turn: its newest messages, and the records from which
-- the steps of its turns are rebuilt, oldest first. It begins with the turn in which the part of the
-- newest summary ends. Records of turns without a message here are of later turns, or of older ones
-- than the messages.
WITH said AS MATERIALIZED (
    SELECT m.turn_id, m.first_seq AS seq, m.role AS kind, coalesce(m.content, '') AS content, m.structured_result AS data FROM messages m
    WHERE m.session_id = sqlc.arg(session_id)::uuid AND m.turn_id <> sqlc.arg(turn_id)::uuid AND m.first_seq < sqlc.arg(before)::bigint
    ORDER BY m.first_seq DESC LIMIT sqlc.arg(n)
), records AS MATERIALIZED (
    SELECT e.turn_id, e.seq, e.kind, e.data FROM sessions s JOIN events e ON e.session_id = s.id
    WHERE s.id = sqlc.arg(session_id)::uuid AND NOT e.delta AND e.turn_id <> sqlc.arg(turn_id)::uuid
      AND e.kind IN ('supplied', 'reply', 'tool_result', 'tool_output', 'compacted')
      AND e.at >= s.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8)
), begins AS (
    SELECT coalesce((SELECT m.seq FROM records c JOIN said m ON m.kind = 'user' AND m.turn_id = (c.data->'upto'->>'turn_id')::uuid
                     WHERE c.kind = 'compacted' AND c.turn_id IN (SELECT turn_id FROM said)
                     ORDER BY c.seq DESC LIMIT 1), 0) AS seq
)
SELECT p.turn_id, p.kind, p.content, p.data
FROM (SELECT * FROM said UNION ALL SELECT turn_id, seq, kind, '', data FROM records) p, begins
WHERE p.seq >= begins.seq
ORDER BY p.seq;
