-- name: RetentionLock :one
-- RetentionLock lets one process at a time look for what may go.
SELECT pg_try_advisory_lock(20564, 1);

-- name: RetentionUnlock :exec
SELECT pg_advisory_unlock(20564, 1);

-- name: RetentionPatience :exec
-- RetentionPatience bounds, in this transaction, how long others wait behind its wait
-- for a lock, and lets it work for longer than a request may.
SELECT set_config('lock_timeout', sqlc.arg(lock_ms)::int::text, true), set_config('statement_timeout', '60s', true);

-- name: RetentionBefore :one
-- RetentionBefore returns the times before which no reader needs text deltas, and the other
-- rows of the log. A turn needs its rows while it has not ended, and its deltas for
-- the replay window after that; whatever is younger than a window stays anyway, so a
-- turn that begins meanwhile changes nothing. Turns that took up to an hour are not looked at: those
-- that ended within the window began within it or in the hour before. One more hour is for clocks
-- that are set back.
SELECT (least(now() - make_interval(secs => sqlc.arg(replay_seconds)::float8) - interval '1 hour',
              (SELECT min(a.created_at) FROM turns a WHERE a.state IN ('queued', 'running', 'waiting')),
              (SELECT min(l.created_at) FROM turns l WHERE l.state = 'lined_up'),
              (SELECT min(f.created_at) FROM turns f
               WHERE f.finished_at - f.created_at > interval '1 hour' AND f.finished_at >= now() - make_interval(secs => sqlc.arg(replay_seconds)::float8)))
        - interval '1 hour')::timestamptz AS deltas,
       (least(now() - make_interval(secs => sqlc.arg(audit_seconds)::float8),
              (SELECT min(a.created_at) FROM turns a WHERE a.state IN ('queued', 'running', 'waiting')),
              (SELECT min(l.created_at) FROM turns l WHERE l.state = 'lined_up'))
        - interval '1 hour')::timestamptz AS records;

-- name: SessionsPastCount :one
-- SessionsPastCount counts the sessions that SessionsPast would list.
SELECT coalesce(sum(p.n), 0)::bigint AS n FROM workspaces w CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM sessions s
    WHERE s.workspace_id = w.id AND s.updated_at < now() - make_interval(secs => sqlc.arg(audit_seconds)::float8)
) p;

-- name: SessionsPast :many
-- SessionsPast lists sessions in which nothing has happened for longer than the audit
-- retention.
SELECT p.id, p.workspace_id FROM workspaces w CROSS JOIN LATERAL (
    SELECT s.id, s.workspace_id FROM sessions s
    WHERE s.workspace_id = w.id AND s.updated_at < now() - make_interval(secs => sqlc.arg(audit_seconds)::float8)
    ORDER BY s.updated_at LIMIT sqlc.arg(n)
) p LIMIT sqlc.arg(n);

-- name: SessionPast :execrows
-- SessionPast locks a session, unless it has come to life meanwhile.
SELECT s.id FROM sessions s
WHERE s.id = $1 AND s.updated_at < now() - make_interval(secs => sqlc.arg(audit_seconds)::float8)
  AND NOT EXISTS (SELECT FROM turns t WHERE t.session_id = s.id AND t.state IN ('lined_up', 'queued', 'running', 'waiting'))
FOR UPDATE;

-- name: SessionForget :exec
-- SessionForget removes a session, and with it all rows that belong to it.
DELETE FROM sessions WHERE id = $1;

-- name: SessionJobsDelete :exec
-- SessionJobsDelete removes the jobs of a session's turns, except those that run: they end by themselves.
DELETE FROM river_job j USING turns t WHERE t.session_id = $1 AND j.id = t.job_id AND j.state <> 'running';

-- name: SessionsOf :many
-- SessionsOf lists some sessions of a workspace.
SELECT id FROM sessions WHERE workspace_id = $1 LIMIT 100;

-- name: MessagesErase :exec
UPDATE messages SET content = NULL, label = NULL, skill = NULL, named = NULL, failure = NULL, structured_result = NULL, attachments = NULL, tool_calls = '[]', refs = '[]'
WHERE session_id = $1;

-- name: ApprovalsErase :exec
UPDATE approvals SET request = NULL, reason = NULL, pattern = NULL WHERE session_id = $1;

-- name: IdempotencyErase :exec
-- IdempotencyErase forgets the keys that callers gave the messages of a session.
DELETE FROM idempotency_keys i USING turns t WHERE t.session_id = $1 AND i.turn_id = t.id;

-- name: AnswersErase :exec
-- AnswersErase deletes the stored answers to repeated requests that hold a session's content.
DELETE FROM idempotent_answers WHERE workspace_id = $1 AND position(convert_to(sqlc.arg(session_id)::uuid::text, 'UTF8') IN answer) > 0;

-- name: TurnsErase :exec
UPDATE turns SET prompt = NULL, end_user = NULL, metadata = NULL, request_hash = NULL, response_schema = NULL, secrets = '{}', rejected = NULL, tools = NULL, options = NULL, origin = NULL,
    canceled_by = CASE WHEN canceled_by IS NOT NULL THEN json_build_object('key', canceled_by -> 'key', 'protocol', canceled_by -> 'protocol') END
WHERE session_id = $1;

-- name: SessionErase :one
-- SessionErase leaves a session of which only ids, times and counts are known.
UPDATE sessions SET erased_at = now(), title = '', titled = false, caller_id = NULL, end_user = NULL, metadata = NULL WHERE id = $1 RETURNING erased_at::timestamptz AS erased_at;

-- name: ErasuresPage :many
-- ErasuresPage is one page of the record of erasures, newest first.
SELECT * FROM erasures WHERE workspace_id = $1 AND (sqlc.narg(before_at)::timestamptz IS NULL OR (at, session_id) < (sqlc.narg(before_at), sqlc.arg(before_id)::uuid))
ORDER BY at DESC, session_id DESC LIMIT sqlc.arg(n);

-- name: SessionToErase :one
-- SessionToErase finds a session of a workspace by its id or its caller.
SELECT id FROM sessions WHERE workspace_id = $1 AND (id = sqlc.narg(id)::uuid OR caller_id = sqlc.narg(caller_id)::text);

-- name: TurnsOpen :one
-- TurnsOpen counts the turns of a workspace that have not ended, by their state.
SELECT count(*) FILTER (WHERE state = 'running')::int AS running, count(*) FILTER (WHERE state = 'waiting')::int AS waiting,
       count(*) FILTER (WHERE state = 'queued')::int AS queued, count(*) FILTER (WHERE state = 'lined_up')::int AS lined_up
FROM turns WHERE workspace_id = $1 AND state IN ('lined_up', 'queued', 'running', 'waiting');

-- name: ErasureInsert :exec
INSERT INTO erasures (session_id, workspace_id, by) VALUES ($1, $2, $3);

-- name: UsageDayNext :one
-- UsageDayNext is the first day that is not summed; it is over if is_over is true. Without sums it
-- is the day ninety days ago.
SELECT d.day::date AS day, (now() > ((d.day + 1)::timestamp AT TIME ZONE 'UTC') + interval '1 hour')::boolean AS is_over
FROM (SELECT coalesce((SELECT max(s.day) + 1 FROM usage_summed s), (now() AT TIME ZONE 'UTC')::date - 90) AS day) d;

-- name: UsageLock :exec
-- UsageLock lets one transaction at a time sum usage or erase users from it, so that a sum sees
-- either a user's turns or their erasure.
SELECT pg_advisory_xact_lock(20564, 2);

-- name: UsageDaySum :exec
-- UsageDaySum stores the sums of the turns that ended in a day, and of the calls in them. Models write
-- the names of tools, so they are cut.
WITH ended AS (
    SELECT t.workspace_id, t.state, coalesce(t.key_id, '') AS key_id, coalesce(t.end_user, '') AS end_user,
           coalesce(t.agent || ' ' || CASE t.agent_version WHEN 0 THEN 'draft' ELSE 'v' || t.agent_version END, '') AS agent,
           coalesce(m.usage ->> 'model', '') AS model, coalesce((m.usage ->> 'input_tokens')::bigint, 0) AS input_tokens,
           coalesce((m.usage ->> 'output_tokens')::bigint, 0) AS output_tokens, (m.usage ->> 'cost_usd')::numeric AS cost_usd, m.tool_calls
    FROM workspaces w CROSS JOIN LATERAL (
        SELECT * FROM turns o
        WHERE o.workspace_id = w.id AND o.state IN ('completed', 'failed', 'canceled')
          AND o.state_at >= (sqlc.arg(day)::date::timestamp AT TIME ZONE 'UTC') AND o.state_at < ((sqlc.arg(day)::date + 1)::timestamp AT TIME ZONE 'UTC')
    ) t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
)
INSERT INTO usage_days (workspace_id, kind, subject, day, turns, completed, input_tokens, output_tokens, cost_usd)
SELECT e.workspace_id, k.kind, k.subject, sqlc.arg(day)::date, count(*), count(*) FILTER (WHERE e.state = 'completed'),
       sum(e.input_tokens), sum(e.output_tokens), sum(e.cost_usd)
FROM ended e CROSS JOIN LATERAL (VALUES ('model', e.model), ('agent', e.agent), ('key', e.key_id), ('user', e.end_user)) AS k (kind, subject)
GROUP BY e.workspace_id, k.kind, k.subject
UNION ALL
SELECT e.workspace_id, 'tool', coalesce(left(c ->> 'tool', 100), ''), sqlc.arg(day)::date, count(*), count(*) FILTER (WHERE c ->> 'ok' IS DISTINCT FROM 'false'), 0, 0, NULL
FROM ended e CROSS JOIN LATERAL json_array_elements(e.tool_calls) c
GROUP BY 1, 3
ON CONFLICT DO NOTHING;

-- name: UsageDaySummed :exec
INSERT INTO usage_summed (day) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: UsageDaysDrop :exec
-- UsageDaysDrop removes sums that are older than the audit retention.
DELETE FROM usage_days WHERE day < (now() - make_interval(secs => sqlc.arg(audit_seconds)::float8))::date;

-- name: UsageErase :exec
-- UsageErase adds the sums of the users of a session that is erased to those of the unknown user, so
-- that totals stay. Sums by model, agent and key keep its turns. UsageLock comes before it.
WITH named AS (
    DELETE FROM usage_days u
    WHERE u.workspace_id = sqlc.arg(workspace_id) AND u.kind = 'user' AND u.subject <> ''
      AND u.subject IN (SELECT t.end_user FROM turns t WHERE t.session_id = sqlc.arg(session_id) AND t.end_user IS NOT NULL)
    RETURNING *
)
INSERT INTO usage_days AS d (workspace_id, kind, subject, day, turns, completed, input_tokens, output_tokens, cost_usd)
SELECT n.workspace_id, n.kind, '', n.day, sum(n.turns), sum(n.completed), sum(n.input_tokens), sum(n.output_tokens), sum(n.cost_usd)
FROM named n GROUP BY n.workspace_id, n.kind, n.day
ON CONFLICT (workspace_id, kind, subject, day) DO UPDATE SET turns = d.turns + excluded.turns, completed = d.completed + excluded.completed,
    input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
    cost_usd = coalesce(d.cost_usd + excluded.cost_usd, d.cost_usd, excluded.cost_usd);
