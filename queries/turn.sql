-- name: TurnBegin :exec
-- TurnBegin stores a turn with its first events, its message and the empty answer to it and, unless
-- args is null, the River job that shall run it. It also stores what the change has made of the
-- session's row; a new session gets its row here. The caller holds the lock of any other. Without a
-- version the turn has the published one of the default agent; a version can only lower the limits.
WITH agent AS (
    SELECT v.id, a.name, v.number, v.max_response_seconds, v.max_turns, v.max_cost_usd
    FROM agent_versions v JOIN agents a ON a.id = v.agent_id
    WHERE v.id = coalesce(sqlc.narg(agent_version_id)::uuid,
        (SELECT d.published_id FROM agents d WHERE d.workspace_id = sqlc.arg(workspace_id) AND d.is_default))
), job AS (
    INSERT INTO river_job (kind, queue, args, max_attempts, scheduled_at)
    SELECT 'turn', 'turns', sqlc.narg(args)::jsonb, 25, sqlc.arg(due)::timestamptz WHERE sqlc.narg(args)::jsonb IS NOT NULL
    RETURNING id
), turn AS (
    INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, max_cost_usd, key_id, scopes, request_hash,
                       prompt, response_schema, secrets, rejected, callback_id, created_at, start_seq, job_id,
                       agent, agent_version, agent_version_id, skill_version, end_user, metadata, tools, options, origin)
    SELECT sqlc.arg(id), sqlc.arg(session_id), sqlc.arg(workspace_id), sqlc.arg(state),
           least(sqlc.arg(max_response_seconds)::int, agent.max_response_seconds), least(sqlc.arg(max_turns)::int, agent.max_turns),
           least(sqlc.narg(max_cost_usd)::numeric, agent.max_cost_usd), sqlc.narg(key_id), sqlc.arg(scopes)::text[], sqlc.arg(request_hash),
           sqlc.arg(prompt), sqlc.arg(response_schema)::json, sqlc.arg(secrets)::text[], sqlc.arg(rejected)::json, sqlc.narg(callback_id)::uuid, sqlc.arg(at),
           sqlc.arg(start_seq), job.id, agent.name, agent.number, agent.id, sqlc.narg(skill_version)::int,
           sqlc.narg(turn_user)::text, sqlc.narg(turn_metadata)::jsonb, sqlc.narg(tools)::json, sqlc.narg(options)::json, sqlc.narg(origin)::json
    FROM (SELECT) one LEFT JOIN agent ON true LEFT JOIN job ON true
), said AS (
    INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, label, skill, named, status, first_seq, last_seq, created_at)
    VALUES (sqlc.arg(message_id), sqlc.arg(session_id), sqlc.arg(id), sqlc.arg(workspace_id), 'user', sqlc.narg(content), sqlc.narg(label),
            sqlc.narg(skill), sqlc.narg(named), 'completed', sqlc.arg(message_seq), sqlc.arg(message_seq), clock_timestamp()),
           (sqlc.arg(answer_id), sqlc.arg(session_id), sqlc.arg(id), sqlc.arg(workspace_id), 'assistant', NULL, NULL,
            NULL, NULL, 'in_progress', sqlc.arg(start_seq), sqlc.arg(start_seq), clock_timestamp())
), logged AS (
    INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
    SELECT u.seq, sqlc.arg(session_id)::uuid, sqlc.arg(id)::uuid, sqlc.arg(at)::timestamptz, false,
           sqlc.arg(ord)::bigint + u.i, (sqlc.arg(kinds)::text[])[u.i], (sqlc.arg(datas)::text[])[u.i]::json
    FROM unnest(sqlc.arg(seqs)::bigint[]) WITH ORDINALITY AS u(seq, i)
)
INSERT INTO sessions AS s (id, workspace_id, epoch, last_seq, last_ord, turn_id, title, message_count, end_user, metadata)
VALUES (sqlc.arg(session_id), sqlc.arg(workspace_id), sqlc.arg(epoch), sqlc.arg(last_seq), sqlc.arg(last_ord), sqlc.narg(turn_id), sqlc.arg(title), 2,
        sqlc.narg(end_user)::text, sqlc.narg(metadata)::jsonb)
ON CONFLICT (id) DO UPDATE
SET epoch = excluded.epoch, last_seq = excluded.last_seq, last_ord = excluded.last_ord, turn_id = excluded.turn_id, title = excluded.title,
    end_user = excluded.end_user, metadata = excluded.metadata,
    message_count = s.message_count + 2, updated_at = clock_timestamp();

-- name: TurnsLinedUp :one
-- TurnsLinedUp counts the messages that wait for the session's turn to end.
SELECT count(*) FROM turns WHERE session_id = $1 AND state = 'lined_up';

-- name: TurnInLine :one
-- TurnInLine returns the turn that is lined up and has at most one event.
SELECT id, created_at FROM turns WHERE workspace_id = $1 AND session_id = $2 AND state = 'lined_up' AND start_seq = $3;

-- name: TurnNext :one
-- TurnNext is the first of a session's turns that are lined up, unless one is in progress.
SELECT t.id FROM turns t
WHERE t.session_id = $1 AND t.state = 'lined_up'
  AND NOT EXISTS (SELECT FROM turns a WHERE a.session_id = t.session_id AND a.state IN ('queued', 'running', 'waiting'))
ORDER BY t.start_seq LIMIT 1;

-- name: TurnQueue :execrows
-- TurnQueue moves a turn on to where a worker may take it: from the line, or when its
-- input is there.
UPDATE turns SET state = 'queued', state_at = clock_timestamp(), job_id = NULL,
    attempt_reason = CASE WHEN state = 'waiting' THEN 'resumed' END
WHERE id = $1 AND state = ANY(sqlc.arg(states)::text[]);

-- name: TurnChoose :exec
-- TurnChoose changes some of the options of a turn.
UPDATE turns SET options = (coalesce(options, '{}')::jsonb || sqlc.arg(options)::jsonb)::json WHERE id = $1;

-- name: TurnPark :execrows
-- TurnPark lets a turn wait for input. The time until it continues does not count. Its worker has
-- measured how long it ran: the clock may have been set meanwhile.
UPDATE turns
SET state = 'waiting', state_at = clock_timestamp(), node = NULL, lease_until = NULL, job_id = NULL,
    active_seconds = active_seconds + sqlc.arg(ran_seconds)::float8, started_at = NULL
WHERE id = $1 AND epoch = $2 AND state = ANY(sqlc.arg(states)::text[]);

-- name: TurnEnqueue :exec
-- TurnEnqueue makes a River job for a queued turn.
WITH job AS (
    INSERT INTO river_job (kind, queue, args, max_attempts, scheduled_at)
    VALUES ('turn', 'turns', sqlc.arg(args)::jsonb, 25, sqlc.arg(due)::timestamptz)
    RETURNING id
)
UPDATE turns SET job_id = (SELECT id FROM job) WHERE turns.id = $1;

-- name: TurnGet :one
SELECT * FROM turns WHERE id = $1;

-- name: TurnEvents :many
-- TurnEvents is the log of one turn, text deltas left out: what a resumed turn is
-- rebuilt from. With it comes the turn's state, and what else there is to read: files that the turn
-- produced, files that came with its message, callbacks, and earlier messages.
SELECT e.seq, e.ord, e.turn_id, e.at, e.kind, e.data,
       (SELECT t.state FROM turns t WHERE t.id = $2)::text AS state,
       EXISTS (SELECT FROM files f WHERE f.turn_id = $2) AS has_files,
       EXISTS (SELECT FROM turn_files a WHERE a.turn_id = $2) AS has_attachments,
       EXISTS (SELECT FROM callbacks c WHERE c.turn_id = $2) AS has_callbacks,
       (EXISTS (SELECT FROM messages m JOIN turns t ON t.id = $2
                WHERE m.session_id = $1 AND m.turn_id <> $2 AND m.first_seq < t.start_seq)
        OR EXISTS (SELECT FROM sessions f WHERE f.id = $1 AND f.parent_id IS NOT NULL))::boolean AS has_history
FROM events e
WHERE e.session_id = $1 AND e.turn_id = $2 AND e.at >= $3 AND NOT e.delta
ORDER BY e.seq;

-- name: TurnView :one
-- TurnView is a turn with its two messages and the question that it waits for.
SELECT sqlc.embed(t), sqlc.embed(u), sqlc.embed(m), a.request AS question, s.caller_id
FROM turns t
JOIN sessions s ON s.id = t.session_id
JOIN messages u ON u.turn_id = t.id AND u.role = 'user'
JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
LEFT JOIN approvals a ON a.turn_id = t.id AND a.status = 'pending' AND t.state = 'waiting'
WHERE t.workspace_id = $1 AND t.id = $2;

-- name: TurnViews :many
-- TurnViews is one page of a workspace's turns, the latest change of state first. Whether a
-- queued turn has run before is in its epoch. One state is a filter of its own, because the order of an
-- index holds for one value only.
SELECT sqlc.embed(t), sqlc.embed(u), sqlc.embed(m), a.request AS question, s.caller_id
FROM turns t
JOIN sessions s ON s.id = t.session_id
JOIN messages u ON u.turn_id = t.id AND u.role = 'user'
JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
LEFT JOIN approvals a ON a.turn_id = t.id AND a.status = 'pending' AND t.state = 'waiting'
WHERE t.workspace_id = sqlc.arg(workspace_id)
  AND (sqlc.narg(session_id)::uuid IS NULL OR t.session_id = sqlc.narg(session_id)::uuid)
  AND (sqlc.narg(state)::text IS NULL OR t.state = sqlc.narg(state)::text)
  AND (sqlc.narg(states)::text[] IS NULL OR t.state = ANY(sqlc.narg(states)::text[]))
  AND (sqlc.narg(begun)::boolean IS NULL OR (t.epoch > 0) = sqlc.narg(begun)::boolean)
  AND (sqlc.narg(since)::timestamptz IS NULL OR t.state_at >= sqlc.narg(since)::timestamptz)
  AND (sqlc.narg(before_at)::timestamptz IS NULL OR (t.state_at, t.id) < (sqlc.narg(before_at)::timestamptz, sqlc.arg(before_id)::uuid))
ORDER BY t.state_at DESC, t.id DESC
LIMIT sqlc.arg(n);

-- name: TurnViewsCount :one
-- TurnViewsCount is how many turns all the pages of TurnViews have, up to a limit.
SELECT count(*) FROM (
    SELECT FROM turns t
    WHERE t.workspace_id = sqlc.arg(workspace_id)
      AND (sqlc.narg(session_id)::uuid IS NULL OR t.session_id = sqlc.narg(session_id)::uuid)
      AND (sqlc.narg(states)::text[] IS NULL OR t.state = ANY(sqlc.narg(states)::text[]))
      AND (sqlc.narg(begun)::boolean IS NULL OR (t.epoch > 0) = sqlc.narg(begun)::boolean)
      AND (sqlc.narg(since)::timestamptz IS NULL OR t.state_at >= sqlc.narg(since)::timestamptz)
    LIMIT sqlc.arg(most)
) counted;

-- name: TurnsEarlier :many
-- TurnsEarlier are the turns of a session that began before another and have events after a cursor.
SELECT id, created_at FROM turns
WHERE session_id = $1 AND start_seq < sqlc.arg(start_seq)::bigint AND end_seq > sqlc.arg(cursor)::bigint;

-- name: TurnsBefore :many
-- TurnsBefore are the turns of a session that began before an event and have ended after it, or not yet.
SELECT id FROM turns
WHERE session_id = $1 AND start_seq < sqlc.arg(seq)::bigint AND (end_seq IS NULL OR end_seq > sqlc.arg(seq)::bigint);

-- name: TurnsOfMessages :many
-- TurnsOfMessages is what lists of messages show of their turns.
SELECT id, end_user, metadata, rejected, agent, agent_version, skill_version FROM turns WHERE id = ANY(sqlc.arg(ids)::uuid[]);

-- name: TurnActive :one
-- TurnActive is the session's turn that has not ended.
SELECT * FROM turns WHERE session_id = $1 AND state IN ('queued', 'running', 'waiting');

-- name: TurnsClaim :many
-- TurnsClaim gives queued turns to a node, as far as their workspaces may run further turns: the
-- oldest first. With each turn comes its agent, as of its message and, for a turn of an earlier
-- release, as of now, and, on its first attempt and unless it is large, its log. The caller holds the
-- locks of the sessions and of the workspaces' queues.
WITH asked AS (
    SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(epochs)::bigint[]) AS epoch
), want AS (
    SELECT t.id, t.workspace_id, t.session_id, t.created_at, t.start_seq, t.epoch = 0 AS is_first, a.epoch, t.agent_version_id,
           row_number() OVER (PARTITION BY t.workspace_id ORDER BY t.created_at, t.id) AS n
    FROM asked a JOIN turns t ON t.id = a.id WHERE t.state = ANY(sqlc.arg(states)::text[])
), room AS (
    SELECT w.id, w.budgeted, w.has_tools, w.fallback_models, w.reasoning_summaries, d.published_id,
           w.max_running - (SELECT count(*) FROM turns r WHERE r.workspace_id = w.id AND r.state = 'running') AS free
    FROM workspaces w JOIN agents d ON d.workspace_id = w.id AND d.is_default
    WHERE w.id IN (SELECT workspace_id FROM want) AND w.paused_at IS NULL AND NOT EXISTS (SELECT FROM server_state p WHERE p.paused_at IS NOT NULL)
)
UPDATE turns
SET state = 'running', state_at = clock_timestamp(), epoch = want.epoch, node = sqlc.arg(node)::int, started_at = clock_timestamp(),
    lease_until = clock_timestamp() + make_interval(secs => sqlc.arg(lease_seconds)::float8),
    agent_version_id = v.id, agent = a.name, agent_version = v.number
FROM want JOIN room ON room.id = want.workspace_id
JOIN agent_versions v ON v.id = coalesce(want.agent_version_id, room.published_id) JOIN agents a ON a.id = v.agent_id
LEFT JOIN LATERAL (
    SELECT array_agg(e.seq ORDER BY e.seq) AS seqs, array_agg(e.ord ORDER BY e.seq) AS ords, array_agg(e.at ORDER BY e.seq) AS ats,
           array_agg(e.kind ORDER BY e.seq) AS kinds, array_agg(e.data::text ORDER BY e.seq) AS datas
    FROM events e WHERE e.session_id = want.session_id AND e.turn_id = want.id AND NOT e.delta
      AND e.at >= want.created_at - make_interval(secs => sqlc.arg(skew_seconds)::float8)
    HAVING sum(octet_length(e.data::text)) < 32768
) l ON want.is_first
WHERE turns.id = want.id AND want.n <= room.free
RETURNING sqlc.embed(turns), room.budgeted, room.has_tools, room.reasoning_summaries, v.model, v.effort, coalesce(v.fallback_models, room.fallback_models)::text[] AS fallback_models, v.instructions, v.tools, v.rules, v.history_tokens,
    l.seqs::bigint[] AS seqs, l.ords::bigint[] AS ords, l.ats::timestamptz[] AS ats, l.kinds::text[] AS kinds, l.datas::text[] AS datas,
    EXISTS (SELECT FROM turn_files a WHERE a.turn_id = want.id) AS has_attachments,
    (EXISTS (SELECT FROM messages m WHERE m.session_id = want.session_id AND m.turn_id <> want.id AND m.first_seq < want.start_seq)
     OR EXISTS (SELECT FROM sessions f WHERE f.id = want.session_id AND f.parent_id IS NOT NULL))::boolean AS has_history;

-- name: WorkspacesQueue :exec
-- WorkspacesQueue lets the claims of one workspace pass one at a time: claims at the same time would
-- not see each other. The order of the locks is the same everywhere.
SELECT pg_advisory_xact_lock(20562, hashtext(w.id::text)) FROM (SELECT DISTINCT unnest(sqlc.arg(ids)::uuid[]) AS id ORDER BY 1) w;

-- name: TurnsUnplace :exec
-- TurnsUnplace notes that queued turns have no job: they wait for a place.
UPDATE turns SET job_id = NULL WHERE turns.id = ANY(sqlc.arg(ids)::uuid[]) AND turns.state = 'queued';

-- name: TurnsPlace :execrows
-- TurnsPlace makes jobs for the queued turns that have none and for which their workspaces
-- have a place now: those of workspaces that run the fewest first, and of one workspace
-- the oldest. The running ones are counted once a workspace, however many wait there.
WITH placeable AS (
    SELECT t.id, t.n
    FROM (SELECT DISTINCT q.workspace_id FROM turns q
          WHERE q.state = 'queued' AND q.job_id IS NULL
            AND q.workspace_id <> ALL(sqlc.arg(full_here)::uuid[])) b
    JOIN workspaces w ON w.id = b.workspace_id AND w.paused_at IS NULL AND NOT EXISTS (SELECT FROM server_state p WHERE p.paused_at IS NOT NULL)
    CROSS JOIN LATERAL (SELECT count(*) AS running FROM turns r WHERE r.workspace_id = w.id AND r.state = 'running') a
    CROSS JOIN LATERAL (
        SELECT q.id, a.running + row_number() OVER (ORDER BY q.created_at) AS n
        FROM turns q WHERE q.workspace_id = w.id AND q.state = 'queued' AND q.job_id IS NULL
        ORDER BY q.created_at
        LIMIT greatest(0, w.max_running - a.running)
    ) t ORDER BY t.n LIMIT 100
), locked AS (
    SELECT q.id, q.session_id, p.n FROM placeable p JOIN turns q ON q.id = p.id
    WHERE q.state = 'queued' AND q.job_id IS NULL
    FOR NO KEY UPDATE OF q SKIP LOCKED
), jobs AS (
    INSERT INTO river_job (kind, queue, args, max_attempts, scheduled_at)
    SELECT 'turn', 'turns', jsonb_build_object('turn_id', l.id, 'session_id', l.session_id), 25, sqlc.arg(due)::timestamptz
    FROM locked l ORDER BY l.n
    RETURNING river_job.id, (args->>'turn_id')::uuid AS turn_id
)
UPDATE turns SET job_id = jobs.id FROM jobs WHERE turns.id = jobs.turn_id;

-- name: TurnsPaused :many
-- TurnsPaused are running turns of workspaces that an administrator has paused.
SELECT t.id, t.session_id FROM turns t JOIN workspaces w ON w.id = t.workspace_id
WHERE t.state = 'running' AND (w.paused_at IS NOT NULL OR EXISTS (SELECT FROM server_state p WHERE p.paused_at IS NOT NULL))
LIMIT 500;

-- name: TurnRequeue :execrows
-- TurnRequeue gives a running turn back: after a crash, or when its node stops.
UPDATE turns
SET state = 'queued', state_at = clock_timestamp(), node = NULL, lease_until = NULL, attempt_reason = sqlc.arg(reason)::text,
    active_seconds = active_seconds + greatest(0, coalesce(extract(epoch FROM least(lease_until, clock_timestamp()) - started_at), 0)), started_at = NULL
WHERE id = $1 AND epoch = $2 AND state = ANY(sqlc.arg(states)::text[]);

-- name: TurnEnd :exec
-- TurnEnd ends a turn that is in a state, with its last events, and stores what the change
-- has made of the session's row. The caller holds the session's lock.
WITH ended AS (
    UPDATE turns
    SET state = sqlc.arg(state), end_seq = sqlc.arg(last_seq)::bigint, state_at = clock_timestamp(), error = sqlc.narg(error),
        finished_at = clock_timestamp(), lease_until = NULL, prompt = NULL, canceled_by = sqlc.narg(canceled_by)::json,
        active_seconds = active_seconds + coalesce(extract(epoch FROM clock_timestamp() - started_at), 0),
        halted_at = CASE WHEN sqlc.arg(halted)::boolean THEN clock_timestamp() END
    WHERE turns.id = sqlc.arg(id) AND turns.state = sqlc.arg(was)::text
    RETURNING turns.id
), logged AS (
    INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
    SELECT u.seq, sqlc.arg(session_id)::uuid, ended.id, sqlc.arg(at)::timestamptz, (sqlc.arg(kinds)::text[])[u.i] IN ('text', 'reasoning'),
           sqlc.arg(ord)::bigint + u.i, (sqlc.arg(kinds)::text[])[u.i], (sqlc.arg(datas)::text[])[u.i]::json
    FROM ended, unnest(sqlc.arg(seqs)::bigint[]) WITH ORDINALITY AS u(seq, i)
)
UPDATE sessions
SET epoch = sqlc.arg(epoch), last_seq = sqlc.arg(last_seq), last_ord = sqlc.arg(last_ord), turn_id = sqlc.narg(turn_id), updated_at = clock_timestamp(),
    input_tokens = input_tokens + sqlc.arg(input)::bigint, output_tokens = output_tokens + sqlc.arg(output)::bigint,
    cost_usd = CASE WHEN sqlc.narg(cost)::numeric IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + sqlc.narg(cost)::numeric END
FROM ended WHERE sessions.id = sqlc.arg(session_id);

-- name: TurnHalted :one
-- TurnHalted confirms that the worker of a cancelled turn has stopped.
UPDATE turns SET halted_at = coalesce(halted_at, clock_timestamp()) WHERE id = $1 AND state = 'canceled' RETURNING session_id;

-- name: LeasesRenew :many
-- LeasesRenew extends the leases of one node and returns the turns that it still holds. After a step
-- of the clock it also moves the start of a turn to as long ago as its worker has measured.
UPDATE turns t SET lease_until = clock_timestamp() + make_interval(secs => sqlc.arg(lease_seconds)::float8),
    started_at = CASE WHEN abs(extract(epoch FROM clock_timestamp() - t.started_at) - r.ran) < 2 THEN t.started_at
                      ELSE clock_timestamp() - make_interval(secs => r.ran) END
FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(ran_seconds)::float8[]) AS ran) r
WHERE t.id = r.id AND t.node = sqlc.arg(node)::int AND t.state = 'running'
RETURNING t.id, t.epoch;

-- name: NodesAlive :many
-- NodesAlive lists the nodes whose process holds its advisory lock.
SELECT nodes_alive()::int AS node;

-- name: TurnsRunning :many
-- TurnsRunning is what the reaper looks at: every running turn, how long its lease lasts, and
-- whether it runs half a minute longer than it may. The worker of such a turn renews its lease and
-- does nothing else.
SELECT id, session_id, epoch, coalesce(node, 0)::int AS node, coalesce(lease_until, 'epoch')::timestamptz AS lease_until,
       coalesce(extract(epoch FROM lease_until - clock_timestamp()), 0)::float8 AS lease_seconds,
       coalesce(started_at + make_interval(secs => greatest(max_response_seconds - active_seconds, 0) + 30) < clock_timestamp(), false)::boolean AS overtime
FROM turns WHERE state = 'running';

-- name: IdempotencyTake :execrows
-- IdempotencyTake reserves a key for a turn. It waits for a transaction that is
-- taking the same key; no row means that the key is taken.
INSERT INTO idempotency_keys (workspace_id, route, key, hash, turn_id) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (workspace_id, route, key) DO UPDATE
SET hash = excluded.hash, turn_id = excluded.turn_id, created_at = now()
WHERE idempotency_keys.created_at < now() - interval '24 hours';

-- name: IdempotencyGet :one
SELECT i.hash, t.id AS turn_id, t.session_id, t.start_seq, t.created_at, t.callback_id, t.key_id FROM idempotency_keys i JOIN turns t ON t.id = i.turn_id
WHERE i.workspace_id = $1 AND i.route = $2 AND i.key = $3 AND i.created_at >= now() - interval '24 hours';

-- name: IdempotencyPurge :execrows
-- IdempotencyPurge removes some of the keys that are a day old. The id of a turn begins with its time
-- in milliseconds, so the first ones of the index are the oldest. Another hour is for clocks of
-- servers that differ.
DELETE FROM idempotency_keys WHERE (workspace_id, route, key) IN (
    SELECT i.workspace_id, i.route, i.key FROM idempotency_keys i
    WHERE i.turn_id < (lpad(to_hex((extract(epoch FROM now() - interval '23 hours') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
      AND i.created_at < now() - interval '24 hours'
    ORDER BY i.turn_id LIMIT sqlc.arg(n) FOR UPDATE SKIP LOCKED
);

-- name: TurnByEvent :one
-- TurnByEvent finds the turn that a key has started and that wrote an event, for a client
-- that sends its message again with the id of the last event it saw.
SELECT t.id, t.session_id, t.created_at FROM turns t
JOIN events e ON e.session_id = t.session_id AND e.turn_id = t.id AND e.at >= t.created_at - interval '1 hour'
WHERE t.workspace_id = $1 AND t.key_id = $2 AND t.request_hash = $3 AND e.seq = $4 AND e.seq >= t.start_seq AND t.created_at > now() - interval '2 days';

-- name: TurnEnded :one
-- TurnEnded is the newest turn of a session where it has ended, how long ago, and the last
-- question that it asked.
SELECT t.id, t.state, extract(epoch FROM clock_timestamp() - t.finished_at)::float8 AS seconds_ago,
       coalesce((SELECT a.id FROM approvals a WHERE a.turn_id = t.id ORDER BY a.seq DESC LIMIT 1),
                '00000000-0000-0000-0000-000000000000')::uuid AS asked
FROM sessions s JOIN turns t ON t.id = s.turn_id
WHERE s.workspace_id = $1 AND s.id = $2 AND s.erased_at IS NULL AND t.finished_at IS NOT NULL;

-- name: TurnRetried :one
-- TurnRetried is the newest turn that the same request of the same key has started a short
-- while ago, in the session that it names: by its id, else by its caller. A client that has the
-- whole answer of a turn does not request it again.
SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.workspace_id = sqlc.arg(workspace_id) AND t.key_id = sqlc.arg(key_id) AND t.request_hash = sqlc.arg(request_hash)
  AND t.told_at IS NULL
  AND t.created_at > now() - make_interval(secs => sqlc.arg(within_seconds)::float8)
  AND CASE WHEN sqlc.narg(session_id)::uuid IS NOT NULL THEN t.session_id = sqlc.narg(session_id)::uuid
           ELSE s.caller_id = sqlc.narg(caller_id)::text END
ORDER BY t.created_at DESC LIMIT 1;

-- name: TurnMarkDelivered :exec
-- TurnMarkDelivered records that the sender of the message has received the whole answer.
UPDATE turns SET told_at = clock_timestamp() WHERE id = $1 AND told_at IS NULL;
