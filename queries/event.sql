-- name: EventsInsert :exec
-- EventsInsert appends to one session whose lock the caller holds; the rows get
-- the ordinals after sqlc.arg(ord).
INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
SELECT u.seq, sqlc.arg(session_id)::uuid, sqlc.arg(turn_id)::uuid, sqlc.arg(at)::timestamptz, u.kind = 'text', sqlc.arg(ord)::bigint + u.i, u.kind, u.data::json
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

-- name: TurnEvents :many
-- TurnEvents is the log of one turn, text deltas left out: what a resumed turn is
-- rebuilt from. With it comes the turn's state, and what else there is to read: files that the turn
-- produced, files that came with its message, callbacks, and earlier messages.
SELECT e.seq, e.ord, e.turn_id, e.at, e.kind, e.data,
       (SELECT t.state FROM turns t WHERE t.id = $2)::text AS state,
       EXISTS (SELECT FROM files f WHERE f.turn_id = $2) AS has_files,
       EXISTS (SELECT FROM turn_files a WHERE a.turn_id = $2) AS has_attachments,
       EXISTS (SELECT FROM callbacks c WHERE c.turn_id = $2) AS has_callbacks,
       EXISTS (SELECT FROM messages m JOIN turns t ON t.id = $2
               WHERE m.session_id = $1 AND m.turn_id <> $2 AND m.first_seq < t.start_seq) AS has_history
FROM events e
WHERE e.session_id = $1 AND e.turn_id = $2 AND e.at >= $3 AND NOT e.delta
ORDER BY e.seq;

-- name: TurnTail :one
-- TurnTail is the text that was shown after the last whole reply of a turn, and whether text was
-- shown before it.
SELECT coalesce(string_agg(data->>'text', '' ORDER BY seq), '')::text AS tail,
       EXISTS (SELECT FROM events p WHERE p.session_id = $1 AND p.turn_id = $2 AND p.at >= $3 AND p.delta AND p.seq < $4) AS spoken
FROM events
WHERE session_id = $1 AND turn_id = $2 AND at >= $3 AND delta AND seq > $4;

-- name: EventsPartitions :one
-- EventsPartitions makes the partitions of the coming days.
SELECT events_partitions(sqlc.arg(days)::int)::int;
