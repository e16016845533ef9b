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
            WHERE e.session_id = sqlc.arg(session_id) AND e.turn_id = sqlc.arg(turn_id) AND e.at >= sqlc.arg(since)::timestamptz AND e.delta AND e.kind = 'text'
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
-- MessagesPage is one page of a session's messages up to an event, with those that a fork has from
-- other sessions. first_seq orders them as they were committed, independent of the clocks of the
-- replicas.
SELECT sqlc.embed(m), p.inherited::boolean AS inherited, p.erased::boolean AS erased FROM (
    SELECT x.id, l.upto IS NOT NULL AS inherited, l.erased::boolean AS erased FROM session_line(sqlc.arg(session_id)::uuid) l CROSS JOIN LATERAL (
        SELECT o.id, o.first_seq FROM messages o
        WHERE o.session_id = l.id AND o.first_seq > sqlc.arg(after)::bigint AND o.first_seq <= sqlc.arg(upto)::bigint
          AND (l.upto IS NULL OR EXISTS (SELECT FROM turns t WHERE t.id = o.turn_id AND t.end_seq <= l.upto))
        ORDER BY o.first_seq LIMIT sqlc.arg(n)
    ) x ORDER BY x.first_seq LIMIT sqlc.arg(n)
) p JOIN messages m ON m.id = p.id
ORDER BY m.first_seq;

-- name: MessagesPageDesc :many
-- MessagesPageDesc is MessagesPage, newest first.
SELECT sqlc.embed(m), p.inherited::boolean AS inherited, p.erased::boolean AS erased FROM (
    SELECT x.id, l.upto IS NOT NULL AS inherited, l.erased::boolean AS erased FROM session_line(sqlc.arg(session_id)::uuid) l CROSS JOIN LATERAL (
        SELECT o.id, o.first_seq FROM messages o
        WHERE o.session_id = l.id AND o.first_seq < sqlc.arg(before)::bigint
          AND (l.upto IS NULL OR EXISTS (SELECT FROM turns t WHERE t.id = o.turn_id AND t.end_seq <= l.upto))
        ORDER BY o.first_seq DESC LIMIT sqlc.arg(n)
    ) x ORDER BY x.first_seq DESC LIMIT sqlc.arg(n)
) p JOIN messages m ON m.id = p.id
ORDER BY m.first_seq DESC;

-- name: TurnShown :one
-- TurnShown is the text of a turn up to an event, and the byte at which its last step begins: replies
-- are the seqs of the turn's replies up to there. is_whole reports that the log has every row of the
-- session from the turn's open event to that event.
WITH log AS MATERIALIZED (
    SELECT e.seq, e.ord, e.turn_id, e.kind, e.data FROM events e
    WHERE e.session_id = sqlc.arg(session_id) AND e.at >= sqlc.arg(since)::timestamptz
      AND e.seq BETWEEN sqlc.arg(start_seq)::bigint AND sqlc.arg(upto)::bigint
), said AS (
    SELECT s.seq, s.text, s.step, max(s.step) OVER () AS last_step
    FROM (SELECT l.seq, l.data->>'text' AS text, width_bucket(l.seq, sqlc.arg(replies)::bigint[]) AS step
          FROM log l WHERE l.kind = 'text' AND l.turn_id = sqlc.arg(turn_id)::uuid) s
)
SELECT coalesce((SELECT string_agg(d.text, '' ORDER BY d.seq) FROM said d), '')::text AS content,
       coalesce((SELECT sum(octet_length(d.text)) FROM said d WHERE d.step < d.last_step), 0)::bigint AS output_at,
       coalesce(max(l.seq) FILTER (WHERE l.turn_id = sqlc.arg(turn_id)::uuid), 0)::bigint AS last_seq,
       coalesce(min(l.seq) = sqlc.arg(start_seq)::bigint AND count(*) = max(l.ord) - min(l.ord) + 1
           AND (max(l.seq) = sqlc.arg(upto)::bigint OR max(l.ord) + 1 = (
               SELECT n.ord FROM events n WHERE n.session_id = sqlc.arg(session_id) AND n.at >= sqlc.arg(since)::timestamptz
                 AND n.seq > sqlc.arg(upto)::bigint ORDER BY n.seq LIMIT 1)), false)::boolean AS is_whole
FROM log l;

-- name: HistoryBefore :many
-- HistoryBefore is a session's history before a turn: its newest messages, and the records from which
-- the steps of its turns are rebuilt, oldest first. That of a fork has the turns of the sessions that
-- it continues, except erased ones. It begins with the turn in which the part of the newest summary
-- ends. Records of turns without a message here are of later turns, or of older ones than the messages.
WITH line AS MATERIALIZED (
    SELECT l.id::uuid AS id, l.upto::bigint AS upto, l.created_at::timestamptz AS created_at FROM session_line(sqlc.arg(session_id)::uuid) l WHERE l.upto IS NULL OR NOT l.erased
), said AS MATERIALIZED (
    SELECT x.turn_id, x.seq, x.kind, x.content, x.data FROM line CROSS JOIN LATERAL (
        SELECT m.turn_id, m.first_seq AS seq, m.role AS kind, coalesce(m.content, '') AS content, m.structured_result AS data FROM messages m
        WHERE m.session_id = line.id AND m.turn_id <> sqlc.arg(turn_id)::uuid AND m.first_seq < sqlc.arg(before)::bigint
          AND (line.upto IS NULL OR EXISTS (SELECT FROM turns t WHERE t.id = m.turn_id AND t.end_seq <= line.upto))
        ORDER BY m.first_seq DESC LIMIT sqlc.arg(n)
    ) x ORDER BY x.seq DESC LIMIT sqlc.arg(n)
), records AS MATERIALIZED (
    SELECT x.turn_id, x.seq, x.kind, x.data FROM line CROSS JOIN LATERAL (
        SELECT e.turn_id, e.seq, e.kind, e.data FROM events e
        WHERE e.session_id = line.id AND e.seq <= coalesce(line.upto, 9223372036854775807) AND NOT e.delta AND e.turn_id <> sqlc.arg(turn_id)::uuid
          AND e.kind IN ('supplied', 'reply', 'tool_result', 'tool_output', 'compacted')
          AND e.at >= line.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8)
        OFFSET 0 -- or PostgreSQL might read the log of every session
    ) x
), begins AS (
    SELECT coalesce((SELECT m.seq FROM records c JOIN said m ON m.kind = 'user' AND m.turn_id = (c.data->'upto'->>'turn_id')::uuid
                     WHERE c.kind = 'compacted' AND c.turn_id IN (SELECT turn_id FROM said)
                     ORDER BY c.seq DESC LIMIT 1), 0) AS seq
)
SELECT p.turn_id, p.kind, p.content, p.data
FROM (SELECT * FROM said UNION ALL SELECT turn_id, seq, kind, '', data FROM records) p, begins
WHERE p.seq >= begins.seq
ORDER BY p.seq;
