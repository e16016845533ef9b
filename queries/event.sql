-- name: EventSeqs :one
-- EventSeqs draws more seqs for the events of a change.
SELECT ARRAY(SELECT nextval('events_seq_seq') FROM generate_series(1, sqlc.arg(n)::int))::bigint[] AS seqs;

-- name: EventsInsert :exec
-- EventsInsert appends to one session whose lock the caller holds; the rows get
-- the ordinals after sqlc.arg(ord).
INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
SELECT u.seq, sqlc.arg(session_id)::uuid, sqlc.arg(turn_id)::uuid, sqlc.arg(at)::timestamptz, u.kind IN ('text', 'reasoning'), sqlc.arg(ord)::bigint + u.i, u.kind, u.data::json
FROM (SELECT unnest(sqlc.arg(seqs)::bigint[]) AS seq, unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(datas)::text[]) AS data,
             generate_series(1, cardinality(sqlc.arg(kinds)::text[])) AS i) u;

-- name: EventsAfter :many
-- EventsAfter is one page of a session's log, with the ordinal of the row before it:
-- the first row follows that one, or something between them is gone. The time lets
-- PostgreSQL skip the partitions from before the turn.
SELECT e.seq, e.ord, e.turn_id, e.at, e.kind, e.data,
       coalesce((SELECT p.ord FROM events p WHERE p.session_id = $1 AND p.seq <= $2 AND p.at >= $3 ORDER BY p.seq DESC LIMIT 1), 0)::bigint AS before
FROM events e
WHERE e.session_id = $1 AND e.seq > $2 AND e.at >= $3
ORDER BY e.seq
LIMIT $4;

-- name: EventTurn :one
-- EventTurn is the turn of an id that a session gives out: that of an event, or the one before a
-- turn's open, where its stream begins. Other ids have no row. is_open reports that it is an open event.
SELECT turn_id, (seq = $2 AND kind = 'open')::boolean AS is_open FROM events WHERE session_id = $1 AND seq BETWEEN $2 AND $2 + 1 AND at >= $3 AND (seq = $2 OR kind = 'open')
ORDER BY seq LIMIT 1;

-- name: EventsWoken :many
-- EventsWoken reads the news of many sessions at once: one query per wake-up,
-- however many sessions were woken.
SELECT e.session_id, e.seq, e.ord, e.turn_id, e.at, e.kind, e.data
FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(cursors)::bigint[]) AS cursor) w
CROSS JOIN LATERAL (
    SELECT * FROM events
    WHERE session_id = w.id AND seq > w.cursor AND at >= sqlc.arg(since)::timestamptz AND at < now() + interval '1 hour'
    ORDER BY seq
    LIMIT sqlc.arg(n)
) e;

-- name: SessionsAhead :many
-- SessionsAhead answers the once-a-second question whether a wake-up was lost: it lists the sessions
-- that have events after the given ones.
SELECT s.id FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(heads)::bigint[]) AS head) f
JOIN sessions s ON s.id = f.id WHERE s.last_seq > f.head;

-- name: TurnTail :one
-- TurnTail is the text that was shown after the last whole reply of a turn, and whether text was
-- shown before it; and the same of the summary of reasoning.
SELECT coalesce(string_agg(data->>'text', '' ORDER BY seq) FILTER (WHERE kind = 'text'), '')::text AS tail,
       coalesce(string_agg(data->>'text', '' ORDER BY seq) FILTER (WHERE kind = 'reasoning'), '')::text AS thought,
       EXISTS (SELECT FROM events p WHERE p.session_id = $1 AND p.turn_id = $2 AND p.at >= $3 AND p.delta AND p.kind = 'text' AND p.seq < $4) AS spoken
FROM events
WHERE session_id = $1 AND turn_id = $2 AND at >= $3 AND delta AND seq > $4;

-- name: EventsPartitions :one
-- EventsPartitions makes the partitions of the coming days.
SELECT events_partitions(sqlc.arg(days)::int)::int;

-- name: Partitions :many
-- Partitions are those of the log, with their indexes and what is stored beside them.
SELECT p.name::text AS name, p.delta::boolean AS delta, p.ends::timestamptz AS ends,
       coalesce(pg_total_relation_size(to_regclass(p.name)), 0)::bigint AS bytes
FROM events_partition_ends() p ORDER BY p.delta DESC, p.ends;

-- name: EventsDrop :one
-- EventsDrop drops the oldest partition that is not needed and returns its name, "" for none.
SELECT coalesce(events_drop(sqlc.arg(deltas_before)::timestamptz, sqlc.arg(records_before)::timestamptz), '')::text AS name;

-- name: EventsErase :exec
-- EventsErase takes the content out of a session's log up to an event.
SELECT events_erase(sqlc.arg(session_id)::uuid, sqlc.arg(upto)::bigint);

-- name: FeedbackList :many
-- FeedbackList is the newest opinion of each answer of a session. The records of a session are few
-- beside its text.
SELECT DISTINCT ON (turn_id) turn_id, at, data FROM events
WHERE session_id = $1 AND NOT delta AND at >= $2 AND kind = 'feedback'
ORDER BY turn_id, seq DESC;

-- name: EventResult :one
-- EventResult is the complete result of a call of a session, or of a turn that a fork has from
-- another one: the newest, if the model has used the id in several turns.
SELECT coalesce(r.output, '')::text AS output, coalesce(r.size, 0)::int AS size, coalesce(r.file, '')::text AS file
FROM session_line(sqlc.arg(session_id)::uuid) l CROSS JOIN LATERAL (
    SELECT e.seq, e.data->>'output' AS output, (e.data->>'size')::int AS size, e.data->>'file' AS file FROM events e
    WHERE e.session_id = l.id AND NOT e.delta AND e.at >= l.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8)
      AND (e.kind = 'tool_output' OR e.kind = 'tool_result' AND e.data->>'truncated' IS NULL)
      AND e.data->>'tool_use_id' = sqlc.arg(tool_use_id)::text
      AND (l.upto IS NULL OR EXISTS (SELECT FROM turns t WHERE t.id = e.turn_id AND t.end_seq <= l.upto))
    ORDER BY e.seq DESC LIMIT 1
) r ORDER BY r.seq DESC LIMIT 1;
