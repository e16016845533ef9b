-- name: SessionLock :exec
-- SessionLock takes the lock that every write to a session holds, and notes in a setting of the
-- transaction which session that is. SessionLocked then reads it.
WITH l AS MATERIALIZED (SELECT id FROM sessions WHERE id = $1 FOR NO KEY UPDATE)
SELECT set_config('parley.locked', l.id::text, true) FROM l;

-- name: SessionTryLock :exec
-- SessionTryLock is SessionLock without a wait: it notes nothing if another transaction holds the lock.
WITH l AS MATERIALIZED (SELECT id FROM sessions WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED)
SELECT set_config('parley.locked', l.id::text, true) FROM l;

-- name: SessionLockOf :exec
-- SessionLockOf is SessionLock for a session of a workspace.
WITH l AS MATERIALIZED (SELECT id FROM sessions WHERE id = $1 AND workspace_id = $2 FOR NO KEY UPDATE)
SELECT set_config('parley.locked', l.id::text, true) FROM l;

-- name: SessionLockCaller :exec
-- SessionLockCaller is SessionLock for the session of a caller.
WITH l AS MATERIALIZED (SELECT id FROM sessions WHERE workspace_id = $1 AND caller_id = sqlc.arg(caller_id)::text FOR NO KEY UPDATE)
SELECT set_config('parley.locked', l.id::text, true) FROM l;

-- name: SessionLocked :one
-- SessionLocked reads the session that the transaction has locked, and what a change of it needs:
-- the time, seqs for its events, the least epoch, and whether a turn is active or lined up. It is a
-- statement of its own, because its snapshot must be younger than the lock.
SELECT sqlc.embed(s), clock_timestamp()::timestamptz AS now,
       ARRAY(SELECT nextval('events_seq_seq') FROM generate_series(1, sqlc.arg(n)::int))::bigint[] AS seqs,
       coalesce((SELECT fence FROM lineage), 0)::bigint AS fence,
       (SELECT count(*) FROM turns l WHERE l.session_id = s.id AND l.state = 'lined_up') AS lined_up,
       EXISTS (SELECT FROM turns a WHERE a.session_id = s.id AND a.state IN ('queued', 'running', 'waiting')) AS active
FROM sessions s WHERE s.id = nullif(current_setting('parley.locked', true), '')::uuid;

-- name: SessionsLock :many
-- SessionsLock locks the sessions of some turns that shall start, but for those that are locked
-- already. The epochs and seqs are those of the turns' start.
WITH locked AS MATERIALIZED (
    SELECT id, workspace_id, epoch, last_ord FROM sessions WHERE id = ANY(sqlc.arg(ids)::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
SELECT l.id, l.workspace_id, (l.last_ord + 1)::bigint AS ord, (greatest(l.epoch, coalesce((SELECT fence FROM lineage), 0)) + 1)::bigint AS epoch,
       nextval('events_seq_seq')::bigint AS seq, clock_timestamp()::timestamptz AS at
FROM locked l;

-- name: SessionsStart :exec
-- SessionsStart stores the first events of the attempts of some turns, and moves their sessions' fences.
WITH u AS (
    SELECT unnest(sqlc.arg(sessions)::uuid[]) AS session_id, unnest(sqlc.arg(turns)::uuid[]) AS turn_id, unnest(sqlc.arg(epochs)::bigint[]) AS epoch,
           unnest(sqlc.arg(seqs)::bigint[]) AS seq, unnest(sqlc.arg(ords)::bigint[]) AS ord, unnest(sqlc.arg(ats)::timestamptz[]) AS at,
           unnest(sqlc.arg(datas)::text[]) AS data
), started AS (
    INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
    SELECT u.seq, u.session_id, u.turn_id, u.at, false, u.ord, 'started', u.data::json FROM u
)
UPDATE sessions SET epoch = u.epoch, last_seq = u.seq, last_ord = u.ord FROM u WHERE sessions.id = u.session_id;

-- name: SessionSave :exec
-- SessionSave stores what a change has made of the session's row; the caller holds the lock.
UPDATE sessions SET epoch = $2, last_seq = $3, last_ord = $4, turn_id = $5 WHERE id = $1;

-- name: SessionNew :one
-- SessionNew is what SessionLocked reads, for a session that does not exist yet. The number of seqs is
-- a constant, or PostgreSQL would make a plan for each call.
SELECT clock_timestamp()::timestamptz AS now,
       ARRAY(SELECT nextval('events_seq_seq') FROM generate_series(1, 4))::bigint[] AS seqs,
       coalesce((SELECT fence FROM lineage), 0)::bigint AS fence;

-- name: SessionInsert :exec
-- SessionInsert makes the session of a caller, unless there is one already.
INSERT INTO sessions (id, workspace_id, caller_id) VALUES ($1, $2, sqlc.arg(caller_id)::text)
ON CONFLICT (workspace_id, caller_id) WHERE caller_id IS NOT NULL DO NOTHING;

-- name: SessionByCaller :one
SELECT id FROM sessions WHERE workspace_id = $1 AND caller_id = sqlc.arg(caller_id)::text;

-- name: SessionHead :one
-- SessionHead is what a reader needs to know before it attaches: the newest event,
-- the newest turn, and the end of the newest one that cannot be replayed any more.
-- Turns of a session end in the order in which they were created.
SELECT s.id, s.last_seq, s.parent_seq, s.created_at, s.erased_at, t.id AS turn_id, t.state, t.start_seq, t.end_seq, t.created_at AS turn_created_at,
       t.error,
       coalesce((SELECT o.end_seq FROM turns o
                 WHERE o.session_id = s.id AND o.finished_at < now() - make_interval(secs => sqlc.arg(replay_seconds)::float8)
                 ORDER BY o.created_at DESC LIMIT 1), 0)::bigint AS gone_seq
FROM sessions s LEFT JOIN turns t ON t.id = s.turn_id
WHERE s.workspace_id = $1 AND s.id = $2;

-- name: SessionChange :execrows
-- SessionChange sets what is not null. It waits for the session's lock.
UPDATE sessions
SET title = coalesce(sqlc.narg(title)::text, title), titled = titled OR sqlc.narg(title)::text IS NOT NULL,
    end_user = coalesce(sqlc.narg(end_user)::text, end_user), metadata = coalesce(sqlc.narg(metadata)::jsonb, metadata)
WHERE workspace_id = $1 AND id = $2 AND erased_at IS NULL;

-- name: SessionForkAt :one
-- SessionForkAt is the end of the last turn of a session's history at or before an event, and how many
-- forks led to the session. seq is 0 if no turn had ended.
SELECT (count(*) - 1)::int AS depth, coalesce(max((
    SELECT max(t.end_seq) FROM turns t WHERE t.session_id = l.id AND t.end_seq <= least(l.upto, sqlc.arg(seq)::bigint))), 0)::bigint AS seq
FROM session_line(sqlc.arg(session_id)::uuid) l;

-- name: SessionHistoryErased :one
-- SessionHistoryErased is whether a session whose history this one continues was erased, or removed by
-- retention.
SELECT EXISTS (
    SELECT FROM session_line(sqlc.arg(session_id)::uuid) l JOIN sessions s ON s.id = l.id LEFT JOIN sessions p ON p.id = s.parent_id
    WHERE s.parent_id IS NOT NULL AND (p.id IS NULL OR p.erased_at IS NOT NULL));

-- name: SessionFork :execrows
-- SessionFork makes a session that continues the history of another one, and belongs to its end user.
INSERT INTO sessions (id, workspace_id, end_user, parent_id, parent_seq, forked_by)
SELECT sqlc.arg(id)::uuid, p.workspace_id, p.end_user, p.id, sqlc.arg(seq)::bigint, sqlc.narg(forked_by)::text
FROM sessions p WHERE p.workspace_id = sqlc.arg(workspace_id) AND p.id = sqlc.arg(parent_id)::uuid AND p.erased_at IS NULL;

-- name: SessionOwner :one
-- SessionOwner is the API key that made a fork, or else that sent the first message of a session; null:
-- it has none, or an administrator's command did.
SELECT coalesce(s.forked_by, t.key_id) AS key_id FROM sessions s LEFT JOIN turns t ON t.session_id = s.id
WHERE s.workspace_id = $1 AND s.id = $2 ORDER BY t.created_at LIMIT 1;

-- name: SessionIsOfUser :one
-- SessionIsOfUser reports whether a session belongs to an end user.
SELECT EXISTS (SELECT FROM sessions WHERE workspace_id = $1 AND id = $2 AND end_user = $3::text AND erased_at IS NULL);
