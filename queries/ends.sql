-- name: TurnsLock :exec
-- TurnsLock locks turns that shall end, with their sessions, but for those that are locked already, and
-- notes in a setting of the transaction which ones it has. It never waits, so the order of the locks
-- is of no account. TurnsClosing then reads them.
WITH l AS MATERIALIZED (
    SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = ANY(sqlc.arg(ids)::uuid[])
    FOR NO KEY UPDATE OF t, s SKIP LOCKED
)
SELECT set_config('parley.locked', coalesce('{' || string_agg(l.id::text, ',') || '}', '{}'), true) FROM l;

-- name: TurnsClosing :many
-- TurnsClosing is what the ends of the turns depend on that TurnsLock has locked. It is a statement of
-- its own, because its snapshot must be younger than the locks. Seqs are drawn for each turn. The
-- events are those of the turn's log, without its text.
SELECT t.id, t.state, s.epoch, s.last_seq, s.last_ord, s.turn_id AS newest, clock_timestamp()::timestamptz AS now,
       coalesce((SELECT fence FROM lineage), 0)::bigint AS fence,
       ARRAY(SELECT nextval('events_seq_seq') FROM generate_series(1, CASE WHEN t.id IS NULL THEN 0 ELSE sqlc.arg(n)::int END))::bigint[] AS seqs,
       (EXISTS (SELECT FROM files f WHERE f.turn_id = t.id) OR EXISTS (SELECT FROM callbacks c WHERE c.turn_id = t.id)
        OR EXISTS (SELECT FROM turns l WHERE l.session_id = s.id AND l.state = 'lined_up'))::boolean AS entails,
       coalesce(e.seqs, '{}')::bigint[] AS log_seqs, coalesce(e.kinds, '{}')::text[] AS log_kinds, coalesce(e.datas, '{}')::text[] AS log_datas
FROM unnest(current_setting('parley.locked')::uuid[]) l (id)
JOIN turns t ON t.id = l.id JOIN sessions s ON s.id = t.session_id
CROSS JOIN LATERAL (
    SELECT array_agg(e.seq ORDER BY e.seq) AS seqs, array_agg(e.kind ORDER BY e.seq) AS kinds, array_agg(e.data::text ORDER BY e.seq) AS datas
    FROM events e
    WHERE e.session_id = t.session_id AND e.turn_id = t.id AND e.at >= t.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8) AND NOT e.delta
) e;

-- name: TurnsEnd :exec
-- TurnsEnd is TurnEnd for turns that are running and completed.
WITH p AS MATERIALIZED (
    SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(sessions)::uuid[]) AS session_id, unnest(sqlc.arg(epochs)::bigint[]) AS epoch,
           unnest(sqlc.arg(last_seqs)::bigint[]) AS last_seq, unnest(sqlc.arg(last_ords)::bigint[]) AS last_ord,
           unnest(sqlc.arg(inputs)::bigint[]) AS input, unnest(sqlc.arg(outputs)::bigint[]) AS output, unnest(sqlc.arg(costs)::text[]) AS cost
), ended AS (
    UPDATE turns
    SET state = 'completed', end_seq = p.last_seq, state_at = clock_timestamp(), error = NULL,
        finished_at = clock_timestamp(), lease_until = NULL, prompt = NULL,
        active_seconds = active_seconds + coalesce(extract(epoch FROM clock_timestamp() - started_at), 0),
        halted_at = clock_timestamp()
    FROM p WHERE turns.id = p.id
), logged AS (
    INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
    SELECT u.seq, u.session_id, u.turn_id, u.at, u.kind IN ('text', 'reasoning'), u.ord, u.kind, u.data::json
    FROM (SELECT unnest(sqlc.arg(event_seqs)::bigint[]) AS seq, unnest(sqlc.arg(event_sessions)::uuid[]) AS session_id,
                 unnest(sqlc.arg(event_turns)::uuid[]) AS turn_id, unnest(sqlc.arg(event_ats)::timestamptz[]) AS at,
                 unnest(sqlc.arg(event_ords)::bigint[]) AS ord, unnest(sqlc.arg(event_kinds)::text[]) AS kind, unnest(sqlc.arg(event_datas)::text[]) AS data) u
)
UPDATE sessions
SET epoch = p.epoch, last_seq = p.last_seq, last_ord = p.last_ord, updated_at = clock_timestamp(),
    input_tokens = input_tokens + p.input, output_tokens = output_tokens + p.output,
    cost_usd = CASE WHEN p.cost = '' THEN cost_usd ELSE coalesce(cost_usd, 0) + p.cost::numeric END
FROM p WHERE sessions.id = p.session_id;

-- name: MessagesClose :exec
-- MessagesClose is MessageClose for turns that are completed without files. Their text is in the log.
WITH p AS MATERIALIZED (
    SELECT unnest(sqlc.arg(turns)::uuid[]) AS turn_id, unnest(sqlc.arg(sessions)::uuid[]) AS session_id, unnest(sqlc.arg(sinces)::timestamptz[]) AS since,
           unnest(sqlc.arg(replies)::text[])::bigint[] AS replies, unnest(sqlc.arg(tool_calls)::text[]) AS tool_calls, unnest(sqlc.arg(refs)::text[]) AS refs,
           unnest(sqlc.arg(results)::text[]) AS result, unnest(sqlc.arg(usages)::text[]) AS usage, unnest(sqlc.arg(last_seqs)::bigint[]) AS last_seq
)
UPDATE messages m
SET failure = NULL, content = said.content, output_at = said.output_at, status = 'completed', error = NULL, tool_calls = p.tool_calls::json, refs = p.refs::json,
    structured_result = nullif(p.result, '')::json, attachments = NULL, usage = nullif(p.usage, '')::json, last_seq = p.last_seq
FROM p CROSS JOIN LATERAL (
    SELECT coalesce(string_agg(d.text, '' ORDER BY d.seq), '') AS content,
           coalesce(sum(octet_length(d.text)) FILTER (WHERE d.step < d.last_step), 0) AS output_at
    FROM (
        SELECT s.seq, s.text, s.step, max(s.step) OVER () AS last_step
        FROM (
            SELECT e.seq, e.data->>'text' AS text, width_bucket(e.seq, p.replies) AS step
            FROM events e
            WHERE e.session_id = p.session_id AND e.turn_id = p.turn_id AND e.at >= p.since AND e.delta AND e.kind = 'text'
        ) s
    ) d
) said
WHERE m.turn_id = p.turn_id AND m.role = 'assistant';
