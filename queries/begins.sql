-- name: TurnsBegin :many
-- TurnsBegin is TurnBegin for the first turns of new sessions. Nothing else knows these sessions, so
-- no lock is needed. The turns have the default agents' published versions. Each open event has a higher seq than every message event.
WITH p AS MATERIALIZED (
    SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(sessions)::uuid[]) AS session_id, unnest(sqlc.arg(workspaces)::uuid[]) AS workspace_id,
           unnest(sqlc.arg(message_ids)::uuid[]) AS message_id, unnest(sqlc.arg(answer_ids)::uuid[]) AS answer_id,
           unnest(sqlc.arg(max_response_seconds)::int[]) AS max_response_seconds, unnest(sqlc.arg(max_turns)::int[]) AS max_turns,
           unnest(sqlc.arg(key_ids)::text[]) AS key_id, unnest(sqlc.arg(scopes)::text[]) AS scopes, unnest(sqlc.arg(request_hashes)::bytea[]) AS request_hash,
           unnest(sqlc.arg(args)::text[]) AS args, unnest(sqlc.arg(dues)::timestamptz[]) AS due,
           unnest(sqlc.arg(titles)::text[]) AS title, unnest(sqlc.arg(contents)::text[]) AS content, unnest(sqlc.arg(names)::text[]) AS named,
           unnest(sqlc.arg(messages)::text[]) AS message, unnest(sqlc.arg(opens)::text[]) AS open,
           unnest(sqlc.arg(end_users)::text[]) AS end_user, unnest(sqlc.arg(metadatas)::text[]) AS metadata,
           unnest(sqlc.arg(origins)::text[]) AS origin
), said AS MATERIALIZED (
    SELECT p.id, nextval('events_seq_seq') AS seq FROM p
), drawn AS MATERIALIZED (
    SELECT said.id, said.seq AS message_seq, nextval('events_seq_seq') AS open_seq, clock_timestamp() AS at FROM said
), session AS (
    INSERT INTO sessions (id, workspace_id, epoch, last_seq, last_ord, turn_id, title, message_count, end_user, metadata)
    SELECT p.session_id, p.workspace_id, 0, d.open_seq, 2, p.id, p.title, 2, nullif(p.end_user, ''), nullif(p.metadata, '')::jsonb FROM p JOIN drawn d ON d.id = p.id
), job AS (
    INSERT INTO river_job (kind, queue, args, max_attempts, scheduled_at)
    SELECT 'turn', 'turns', p.args::jsonb, 25, p.due FROM p
    RETURNING river_job.id, (river_job.args->>'turn_id')::uuid AS turn_id
), turn AS (
    INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, max_cost_usd, key_id, scopes, request_hash,
                       created_at, start_seq, job_id, agent, agent_version, agent_version_id, end_user, metadata, origin)
    SELECT p.id, p.session_id, p.workspace_id, 'queued', least(p.max_response_seconds, v.max_response_seconds), least(p.max_turns, v.max_turns),
           v.max_cost_usd, nullif(p.key_id, ''), string_to_array(p.scopes, ' '), p.request_hash, d.at, d.open_seq, job.id, a.name, v.number, v.id,
           nullif(p.end_user, ''), nullif(p.metadata, '')::jsonb, nullif(p.origin, '')::json
    FROM p JOIN drawn d ON d.id = p.id JOIN job ON job.turn_id = p.id
    LEFT JOIN agents a ON a.workspace_id = p.workspace_id AND a.is_default LEFT JOIN agent_versions v ON v.id = a.published_id
), spoken AS (
    INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, named, status, first_seq, last_seq, created_at)
    SELECT p.message_id, p.session_id, p.id, p.workspace_id, 'user', p.content, nullif(p.named, ''), 'completed', d.message_seq, d.message_seq, clock_timestamp()
    FROM p JOIN drawn d ON d.id = p.id
    UNION ALL
    SELECT p.answer_id, p.session_id, p.id, p.workspace_id, 'assistant', NULL, NULL, 'in_progress', d.open_seq, d.open_seq, clock_timestamp()
    FROM p JOIN drawn d ON d.id = p.id
), logged AS (
    INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
    SELECT d.message_seq, p.session_id, p.id, d.at, false, 1, 'message', p.message::json FROM p JOIN drawn d ON d.id = p.id
    UNION ALL
    SELECT d.open_seq, p.session_id, p.id, d.at, false, 2, 'open', p.open::json FROM p JOIN drawn d ON d.id = p.id
)
SELECT drawn.id::uuid AS id, drawn.message_seq::bigint AS message_seq, drawn.open_seq::bigint AS open_seq, drawn.at::timestamptz AS at FROM drawn;
