-- +goose Up

-- The audit views, version 1. Their columns are an interface: a release adds columns at the end and
-- changes the meaning of none; a change that breaks a query raises the version in the comment of the
-- schema. They show no secret, no hash of one, and no address that works without a key. Each runs with
-- the rights of its owner, so its reader needs none on the tables.
CREATE SCHEMA IF NOT EXISTS audit;
COMMENT ON SCHEMA audit IS 'Parley audit views, version 1. docs/audit.md has questions with their SQL.';

-- audit_actor_kind is the way by which the sender of a request came in.
-- +goose StatementBegin
CREATE FUNCTION audit_actor_kind(actor text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN actor IS NULL THEN 'command' WHEN actor LIKE 'mbr\_%' THEN 'member' ELSE 'key' END
$$;
-- +goose StatementEnd

-- audit_data is the data of an event without the model's sealed reasoning and without addresses that
-- work without a key.
-- +goose StatementBegin
CREATE FUNCTION audit_data(kind text, data json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN kind = 'reply' AND data ->> 'reasoning' IS NOT NULL THEN (data::jsonb - 'reasoning')::json
        WHEN kind = 'connect_required' THEN (data::jsonb - 'connect_url')::json
        WHEN kind = 'attachment' AND json_typeof(data -> 'attachments') = 'array' THEN jsonb_set(data::jsonb, '{attachments}',
            coalesce((SELECT jsonb_agg(f - 'download_url') FROM jsonb_array_elements(data::jsonb -> 'attachments') f), '[]'))::json
        ELSE data END
$$;
-- +goose StatementEnd

CREATE VIEW audit.sessions AS
SELECT s.workspace_id, s.id AS session_id, s.last_seq AS seq, s.created_at AS at, s.updated_at AS last_at, w.slug AS workspace,
       s.caller_id, s.end_user, s.title, s.metadata, coalesce(t.state, 'not_started') AS state, t.id AS turn_id,
       s.message_count AS messages, s.last_ord AS events, s.input_tokens, s.output_tokens, s.cost_usd, s.erased_at, e.by AS erased_by
FROM sessions s
JOIN workspaces w ON w.id = s.workspace_id
LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN erasures e ON e.session_id = s.id;

CREATE VIEW audit.turns AS
SELECT t.workspace_id, t.session_id, t.id AS turn_id, t.start_seq AS seq, t.created_at AS at, t.end_seq, t.finished_at, t.state,
       CASE t.state WHEN 'completed' THEN 'ok' WHEN 'failed' THEN 'failed' WHEN 'canceled' THEN 'canceled' END AS outcome, t.error,
       (SELECT m.failure FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant') AS error_message,
       t.agent, t.agent_version, (SELECT m.skill FROM messages m WHERE m.turn_id = t.id AND m.role = 'user') AS skill, t.skill_version,
       audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user,
       t.origin ->> 'protocol' AS protocol, t.origin ->> 'address' AS address, t.origin ->> 'request_id' AS request_id, t.metadata,
       CASE WHEN t.canceled_by IS NOT NULL THEN audit_actor_kind(t.canceled_by ->> 'key') END AS canceled_by_kind,
       t.canceled_by ->> 'key' AS canceled_by, t.canceled_by ->> 'protocol' AS canceled_protocol,
       t.canceled_by ->> 'address' AS canceled_address, t.canceled_by ->> 'request_id' AS canceled_request_id,
       (SELECT m.usage ->> 'model' FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant') AS model,
       (SELECT (m.usage ->> 'input_tokens')::bigint FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant') AS input_tokens,
       (SELECT (m.usage ->> 'output_tokens')::bigint FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant') AS output_tokens,
       (SELECT (m.usage ->> 'cost_usd')::numeric FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant') AS cost_usd,
       t.active_seconds,
       (SELECT count(*) FROM events e WHERE e.session_id = t.session_id AND e.seq BETWEEN t.start_seq AND coalesce(t.end_seq, 9223372036854775807)
          AND NOT e.delta AND e.at >= t.created_at - interval '1 hour' AND e.turn_id = t.id AND e.kind = 'started') AS attempts,
       (SELECT json_agg(json_build_object('seq', e.seq, 'at', e.at, 'reason', x.reason, 'node', e.data ->> 'node') ORDER BY e.seq)
        FROM events e CROSS JOIN LATERAL (
            SELECT coalesce(e.data ->> 'reason', 'first') AS reason WHERE e.kind = 'started'
            UNION ALL
            SELECT 'model_retry: ' || r FROM json_array_elements_text(e.data -> 'retries') r WHERE e.kind = 'reply'
            UNION ALL
            SELECT 'model_fallback: ' || (e.data ->> 'reason') WHERE e.kind = 'model_fallback') x
        WHERE e.session_id = t.session_id AND e.seq BETWEEN t.start_seq AND coalesce(t.end_seq, 9223372036854775807)
          AND NOT e.delta AND e.at >= t.created_at - interval '1 hour' AND e.turn_id = t.id AND e.kind IN ('started', 'reply', 'model_fallback')) AS attempt_log,
       (SELECT array_agg(e.data ->> 'prompt_sha256' ORDER BY e.seq) FROM events e
        WHERE e.session_id = t.session_id AND e.seq BETWEEN t.start_seq AND coalesce(t.end_seq, 9223372036854775807)
          AND NOT e.delta AND e.at >= t.created_at - interval '1 hour' AND e.turn_id = t.id AND e.kind = 'reply') AS prompt_sha256
FROM turns t;

CREATE VIEW audit.messages AS
SELECT m.workspace_id, m.session_id, m.turn_id, m.first_seq AS seq, m.created_at AS at, m.last_seq, m.id AS message_id, m.role, m.content, m.label, m.status,
       CASE m.status WHEN 'completed' THEN 'ok' WHEN 'failed' THEN 'failed' WHEN 'canceled' THEN 'canceled' END AS outcome,
       m.error, m.failure AS error_message, m.structured_result, t.agent, t.agent_version, m.skill, t.skill_version,
       audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id,
       coalesce((SELECT k.name FROM api_keys k WHERE k.id = t.key_id), (SELECT coalesce(nullif(u.name, ''), u.email) FROM users u WHERE u.id = t.key_id)) AS actor_name,
       t.end_user, t.origin ->> 'protocol' AS protocol, t.origin ->> 'address' AS address, t.origin ->> 'request_id' AS request_id,
       m.usage ->> 'model' AS model, (m.usage ->> 'input_tokens')::bigint AS input_tokens, (m.usage ->> 'output_tokens')::bigint AS output_tokens,
       (m.usage ->> 'cost_usd')::numeric AS cost_usd, s.erased_at
FROM messages m
LEFT JOIN turns t ON t.id = m.turn_id
LEFT JOIN sessions s ON s.id = m.session_id;

CREATE VIEW audit.events AS
SELECT s.workspace_id, e.session_id, e.turn_id, e.seq, e.at, e.ord AS ordinal, e.kind AS event,
       left(CASE e.kind
           WHEN 'text' THEN e.data ->> 'text'
           WHEN 'message' THEN coalesce(e.data ->> 'label', e.data ->> 'content')
           WHEN 'reply' THEN e.data ->> 'text'
           WHEN 'tool_use' THEN e.data ->> 'summary'
           WHEN 'tool_result' THEN (e.data ->> 'tool') || CASE e.data ->> 'ok' WHEN 'true' THEN ' ok' ELSE ' failed' END
           WHEN 'tool_verdict' THEN concat_ws(' ', e.data ->> 'verdict', e.data ->> 'source', e.data ->> 'pattern')
           WHEN 'input_required' THEN concat_ws(' ', e.data ->> 'kind', e.data ->> 'key_name', e.data ->> 'plan')
           WHEN 'decision' THEN e.data ->> 'outcome'
           WHEN 'reference' THEN e.data ->> 'path'
           WHEN 'feedback' THEN e.data ->> 'rating'
           WHEN 'usage' THEN concat_ws(' ', e.data ->> 'model', e.data ->> 'input_tokens', e.data ->> 'output_tokens')
           WHEN 'error' THEN e.data ->> 'code'
           WHEN 'started' THEN coalesce(e.data ->> 'reason', 'first')
           WHEN 'model_fallback' THEN e.data ->> 'to'
       END, 200) AS summary,
       audit_data(e.kind, e.data) AS data, e.data ->> 'prompt_sha256' AS prompt_sha256, e.data::text = '{}' AS erased
FROM events e
LEFT JOIN sessions s ON s.id = e.session_id;

CREATE VIEW audit.tool_calls AS
SELECT t.workspace_id, u.session_id, u.turn_id, u.seq, u.at, u.data ->> 'tool_use_id' AS tool_use_id, u.data ->> 'tool' AS tool, u.data ->> 'summary' AS summary,
       (SELECT c -> 'input' FROM events y CROSS JOIN LATERAL json_array_elements(y.data -> 'calls') c
        WHERE y.session_id = u.session_id AND y.seq BETWEEN t.start_seq AND u.seq AND NOT y.delta AND y.at BETWEEN t.created_at - interval '1 hour' AND u.at + interval '1 hour'
          AND y.turn_id = u.turn_id AND y.kind = 'reply' AND c ->> 'id' = u.data ->> 'tool_use_id'
        ORDER BY y.seq DESC LIMIT 1) AS input,
       CASE WHEN v.data ->> 'verdict' <> 'allowed' THEN v.data ->> 'verdict'
            WHEN r.data ->> 'ok' = 'true' THEN 'ok'
            WHEN r.data ->> 'output' = 'interrupted, outcome unknown' THEN 'interrupted'
            WHEN r.data ->> 'ok' = 'false' THEN 'failed' END AS outcome,
       v.data ->> 'source' AS decided_by, v.data ->> 'pattern' AS pattern, (v.data ->> 'approval_id')::uuid AS approval_id,
       r.seq AS result_seq, r.at AS finished_at, extract(epoch FROM r.at - u.at)::float8 AS seconds,
       r.data ->> 'output' AS output, coalesce((r.data ->> 'truncated')::boolean, false) AS truncated,
       t.agent, t.agent_version, audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user, u.data::text = '{}' AS erased
FROM events u
JOIN turns t ON t.id = u.turn_id
LEFT JOIN LATERAL (
    SELECT e.seq, e.at, e.data FROM events e
    WHERE e.session_id = u.session_id AND e.seq BETWEEN u.seq AND coalesce(t.end_seq, 9223372036854775807) AND NOT e.delta AND e.at >= u.at - interval '1 hour'
      AND e.turn_id = u.turn_id AND e.kind = 'tool_result' AND e.data ->> 'tool_use_id' = u.data ->> 'tool_use_id'
    ORDER BY e.seq LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT e.data FROM events e
    WHERE e.session_id = u.session_id AND e.seq BETWEEN t.start_seq AND coalesce(r.seq, t.end_seq, 9223372036854775807) AND NOT e.delta
      AND e.at >= t.created_at - interval '1 hour' AND e.turn_id = u.turn_id AND e.kind = 'tool_verdict' AND e.data ->> 'tool_use_id' = u.data ->> 'tool_use_id'
    ORDER BY e.seq DESC LIMIT 1
) v ON true
WHERE u.kind = 'tool_use' AND NOT u.delta;

CREATE VIEW audit.approvals AS
SELECT a.workspace_id, a.session_id, a.turn_id, a.seq, a.created_at AS at, a.id AS approval_id, a.expires_at,
       CASE WHEN a.status = 'pending' AND a.expires_at <= now() THEN 'expired' ELSE a.status END AS outcome,
       a.request ->> 'plan' AS plan, a.request -> 'operations' AS operations,
       ARRAY(SELECT o ->> 'tool' FROM json_array_elements(a.request -> 'operations') o) AS tools,
       CASE WHEN a.status = 'canceled' THEN 'cancel' WHEN a.status = 'expired' OR a.status = 'pending' AND a.expires_at <= now() THEN 'timeout'
            WHEN a.decided_at IS NOT NULL THEN audit_actor_kind(a.decided_by) END AS decided_by_kind,
       a.decided_by, coalesce((SELECT k.name FROM api_keys k WHERE k.id = a.decided_by),
           (SELECT coalesce(nullif(u.name, ''), u.email) FROM users u WHERE u.id = a.decided_by)) AS decided_by_name,
       a.actor AS decided_for, a.decided_at, extract(epoch FROM a.decided_at - a.created_at)::float8 AS seconds, a.reason, a.pattern,
       coalesce((a.request ->> 'separate_approver')::boolean, false) AS separate_approver, t.agent, t.agent_version,
       audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user, a.request IS NULL AS erased
FROM approvals a
LEFT JOIN turns t ON t.id = a.turn_id
WHERE a.kind = 'approval';

CREATE VIEW audit.secret_requests AS
SELECT a.workspace_id, a.session_id, a.turn_id, a.seq, a.created_at AS at, a.id AS approval_id, a.expires_at,
       a.request ->> 'key_name' AS secret, a.request ->> 'tool_use_id' AS tool_use_id, a.request ->> 'reason' AS reason,
       CASE WHEN a.status = 'pending' AND a.expires_at <= now() THEN 'expired' ELSE a.status END AS outcome,
       CASE WHEN a.status = 'canceled' THEN 'cancel' WHEN a.status = 'expired' OR a.status = 'pending' AND a.expires_at <= now() THEN 'timeout'
            WHEN a.decided_at IS NOT NULL THEN audit_actor_kind(a.decided_by) END AS decided_by_kind,
       a.decided_by, a.actor AS decided_for, a.decided_at, t.agent, t.agent_version,
       audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user, a.request IS NULL AS erased
FROM approvals a
LEFT JOIN turns t ON t.id = a.turn_id
WHERE a.kind = 'secret';

CREATE VIEW audit.attachments AS
SELECT f.workspace_id, t.session_id, t.id AS turn_id, CASE f.direction WHEN 'in' THEN t.start_seq ELSE t.end_seq END AS seq, f.created_at AS at, f.id AS file_id,
       CASE f.direction WHEN 'in' THEN 'received' ELSE 'produced' END AS direction, f.filename, f.mime, f.size, encode(f.sha256, 'hex') AS sha256,
       f.state, f.code AS error, f.reason AS error_message, f.call_id AS tool_use_id, f.key_id AS uploaded_by, f.ready_at, f.deleted_at,
       audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user
FROM files f
LEFT JOIN turn_files i ON i.file_id = f.id
LEFT JOIN turns t ON t.id = coalesce(f.turn_id, i.turn_id);

CREATE VIEW audit.documents_read AS
SELECT t.workspace_id, e.session_id, e.turn_id, e.seq, e.at,
       CASE WHEN e.data ->> 'source' = 'wiki_read' THEN 'wiki/' || (e.data ->> 'path') || '.md' ELSE e.data ->> 'path' END AS path,
       e.data ->> 'source' AS tool, t.agent, t.agent_version, audit_actor_kind(t.key_id) AS actor_kind, t.key_id AS actor_id, t.end_user,
       e.data::text = '{}' AS erased
FROM events e
LEFT JOIN turns t ON t.id = e.turn_id
WHERE e.kind = 'reference' AND NOT e.delta;

CREATE VIEW audit.callbacks AS
SELECT d.workspace_id, c.session_id, c.turn_id, d.seq, d.created_at AS at, d.id AS delivery_id, c.id AS callback_id, c.name, c.protocol, d.type,
       CASE d.status WHEN 'delivered' THEN 'ok' WHEN 'failed' THEN 'failed' END AS outcome, d.status, d.attempts, a.status AS http_status, a.error AS last_error,
       a.at AS last_attempt_at, d.next_at, c.disabled_at
FROM callback_deliveries d
JOIN callbacks c ON c.id = d.callback_id
LEFT JOIN LATERAL (SELECT x.status, x.error, x.at FROM callback_attempts x WHERE x.delivery_id = d.id ORDER BY x.n DESC LIMIT 1) a ON true;

-- The days that are not summed yet are counted from their turns, as the report on usage does.
CREATE VIEW audit.usage_daily AS
SELECT u.workspace_id, u.day, (u.day::timestamp AT TIME ZONE 'UTC') AS at, u.kind AS dimension, u.subject AS value,
       u.turns, u.completed, u.input_tokens, u.output_tokens, u.cost_usd
FROM usage_days u
UNION ALL
SELECT t.workspace_id, t.day, (t.day::timestamp AT TIME ZONE 'UTC'), x.dimension, x.value,
       count(*), count(*) FILTER (WHERE x.completed), coalesce(sum(x.input_tokens), 0)::bigint, coalesce(sum(x.output_tokens), 0)::bigint, sum(x.cost_usd)
FROM (
    SELECT o.*, (o.state_at AT TIME ZONE 'UTC')::date AS day, m.usage, m.tool_calls
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT n.id, n.workspace_id, n.state, n.state_at, n.agent, n.agent_version, n.key_id, n.end_user FROM turns n
        WHERE n.workspace_id = w.id AND n.state IN ('completed', 'failed', 'canceled')
          AND n.state_at >= coalesce((SELECT max(d.day) + 1 FROM usage_summed d), (now() AT TIME ZONE 'UTC')::date - 90)::timestamp AT TIME ZONE 'UTC'
        OFFSET 0 -- by the index of each workspace
    ) o
    CROSS JOIN LATERAL (SELECT * FROM messages a WHERE a.turn_id = o.id AND a.role = 'assistant' LIMIT 1) m -- by the index
) t
CROSS JOIN LATERAL (
    SELECT k.dimension, k.value, t.state = 'completed' AS completed, (t.usage ->> 'input_tokens')::bigint AS input_tokens,
           (t.usage ->> 'output_tokens')::bigint AS output_tokens, (t.usage ->> 'cost_usd')::numeric AS cost_usd
    FROM (VALUES ('model', t.usage ->> 'model'), ('agent', t.agent || ' ' || CASE t.agent_version WHEN 0 THEN 'draft' ELSE 'v' || t.agent_version END),
                 ('key', t.key_id), ('user', t.end_user)) AS k (dimension, value)
    UNION ALL
    SELECT 'tool', left(c ->> 'tool', 100), c ->> 'ok' IS DISTINCT FROM 'false', 0, 0, NULL FROM json_array_elements(t.tool_calls) c
) x
GROUP BY t.workspace_id, t.day, x.dimension, x.value;

CREATE VIEW audit.key_use AS
SELECT k.workspace_id, k.created_at AS at, k.id AS key_id, k.name, k.scopes,
       CASE WHEN k.revoked_at <= now() THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired' ELSE 'active' END AS status,
       k.created_by, k.member_id, k.browser, k.expires_at, k.revoked_at, k.replaced_by, k.last_used_at,
       coalesce(u.turns, 0) AS turns, u.cost_usd,
       (SELECT count(*) FROM approvals a WHERE a.workspace_id = k.workspace_id AND a.decided_by = k.id) AS decisions
FROM api_keys k
LEFT JOIN (SELECT d.workspace_id, d.value, sum(d.turns)::bigint AS turns, sum(d.cost_usd) AS cost_usd
           FROM audit.usage_daily d WHERE d.dimension = 'key' GROUP BY d.workspace_id, d.value) u
    ON u.workspace_id = k.workspace_id AND u.value = k.id;

CREATE VIEW audit.tool_rules_history AS
SELECT l.workspace_id, l.id AS seq, l.at, CASE l.object WHEN 'allowlist' THEN 'pattern' ELSE 'rule' END AS kind,
       coalesce(l.after, l.before) ->> 'tool' AS tool, coalesce(l.after, l.before) ->> 'pattern' AS pattern,
       l.before ->> 'rule' AS rule_before, l.after ->> 'rule' AS rule_after,
       CASE WHEN l.action = 'insert' THEN 'added' WHEN l.action = 'delete' OR l.after ->> 'revoked_at' IS NOT NULL THEN 'removed' ELSE 'changed' END AS action,
       (coalesce(l.after, l.before) ->> 'approval_id')::uuid AS approval_id, l.actor_kind, l.actor_id, l.actor_name, l.address, l.request_id
FROM admin_log l
WHERE l.object IN ('tool_rules', 'allowlist');

CREATE VIEW audit.admin_log AS
SELECT l.workspace_id, l.id AS seq, l.at, l.object, l.object_id, l.action, l.actor_kind, l.actor_id, l.actor_name, l.address, l.request_id, l.before, l.after
FROM admin_log l;

CREATE VIEW audit.feedback AS
SELECT t.workspace_id, e.session_id, e.turn_id, e.seq, e.at, e.data ->> 'rating' AS rating, e.data ->> 'note' AS note,
       CASE WHEN e.data ->> 'key' IS NOT NULL THEN audit_actor_kind(e.data ->> 'key') END AS actor_kind, e.data ->> 'key' AS actor_id,
       NOT EXISTS (SELECT FROM events n WHERE n.session_id = e.session_id AND n.seq > e.seq AND NOT n.delta AND n.at >= e.at - interval '1 hour'
                   AND n.turn_id = e.turn_id AND n.kind = 'feedback') AS counts,
       t.agent, t.agent_version, e.data::text = '{}' AS erased
FROM events e
LEFT JOIN turns t ON t.id = e.turn_id
WHERE e.kind = 'feedback' AND NOT e.delta;

COMMENT ON VIEW audit.sessions IS 'Conversations, one row each. An erased one keeps its times and counts.';
COMMENT ON VIEW audit.turns IS 'Messages with the work on their answers, one row each.';
COMMENT ON VIEW audit.messages IS 'Messages of users and answers of the agent, as conversations show them.';
COMMENT ON VIEW audit.events IS 'The log: every event of every session. Text deltas end with the replay window, the other rows with the audit retention.';
COMMENT ON VIEW audit.tool_calls IS 'Tool calls, one row each, with what let them run and how they ended.';
COMMENT ON VIEW audit.approvals IS 'Questions whether tool calls may run, with their answers.';
COMMENT ON VIEW audit.secret_requests IS 'Questions for the value of a secret. A value is never shown.';
COMMENT ON VIEW audit.attachments IS 'Files that messages received or turns produced. A file of several messages has several rows.';
COMMENT ON VIEW audit.documents_read IS 'Knowledge documents that the agent read, one row for each time.';
COMMENT ON VIEW audit.callbacks IS 'Reports to callback URLs, one row each. The URL itself is encrypted.';
COMMENT ON VIEW audit.usage_daily IS 'Turns, tokens and cost by day of UTC and by one dimension. Each dimension has the sum of all turns.';
COMMENT ON VIEW audit.key_use IS 'API keys and their use. Neither a key nor its hash is shown.';
COMMENT ON VIEW audit.tool_rules_history IS 'Changes of the rules of tools and of the allow-list.';
COMMENT ON VIEW audit.admin_log IS 'Changes of the configuration, which triggers record.';
COMMENT ON VIEW audit.feedback IS 'Ratings of answers.';

-- A comment without a view is that of every view with the column.
-- +goose StatementBegin
DO $do$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT DISTINCT ON (c.table_name, c.column_name) c.table_name, c.column_name, t.comment
        FROM information_schema.columns c
        JOIN (VALUES
            ('', 'workspace_id', 'Id of the workspace.'),
            ('', 'session_id', 'Id of the session.'),
            ('', 'turn_id', 'Id of the turn.'),
            ('', 'seq', 'Position in the log of all sessions: the id of the frame in streams.'),
            ('', 'at', 'When it happened, by the clock of PostgreSQL.'),
            ('', 'agent', 'Name of the agent.'),
            ('', 'agent_version', 'Version of the agent; 0: a draft.'),
            ('', 'skill', 'Name of the skill that the message called; null: none.'),
            ('', 'skill_version', 'Version of that skill.'),
            ('', 'actor_kind', 'How the sender of the message came in: key (an API key), member (of the web application), command (of an administrator).'),
            ('', 'actor_id', 'Id of that key or member; null: a command.'),
            ('', 'actor_name', 'Name of that key or member today.'),
            ('', 'end_user', 'The end user, as the caller names them; null: unknown or erased.'),
            ('', 'protocol', 'Protocol of the request: rest, mcp, a2a, openai, aisdk, agui or web.'),
            ('', 'address', 'Address of the client; null: unknown or erased.'),
            ('', 'request_id', 'Id of the HTTP request, as its answer and the logs have it.'),
            ('', 'metadata', 'Pairs of texts that the caller sent.'),
            ('', 'input_tokens', 'Tokens of requests to models.'),
            ('', 'output_tokens', 'Tokens of replies of models.'),
            ('', 'cost_usd', 'Cost in US dollars; null: no price was known.'),
            ('', 'model', 'Model of the last reply.'),
            ('', 'erased', 'True if the content was erased.'),
            ('', 'erased_at', 'When the session was erased; null: it was not.'),
            ('', 'approval_id', 'Id of the question.'),
            ('', 'tool_use_id', 'Id of the tool call.'),
            ('', 'expires_at', 'End of the time in which it could be used or answered.'),
            ('', 'decided_by', 'Id of the key or member that answered.'),
            ('', 'decided_by_kind', 'What ended the question: key, member, command, timeout (no answer came in time), cancel (the turn was canceled); null: it is open.'),
            ('', 'decided_by_name', 'Name of that key or member today.'),
            ('', 'decided_for', 'The user behind the key, as its holder names them.'),
            ('', 'decided_at', 'When it was answered.'),
            ('sessions', 'seq', 'Position of its newest event in the log of all sessions.'),
            ('sessions', 'at', 'When the session began.'),
            ('sessions', 'last_at', 'Last message or end of a turn.'),
            ('sessions', 'workspace', 'Name of the workspace in addresses.'),
            ('sessions', 'caller_id', 'The session''s name at its caller; null: none.'),
            ('sessions', 'title', 'Title; empty after an erasure.'),
            ('sessions', 'state', 'State of the newest turn: not_started, lined_up, queued, running, waiting, completed, failed, canceled.'),
            ('sessions', 'turn_id', 'Id of the newest turn.'),
            ('sessions', 'messages', 'Number of messages and answers.'),
            ('sessions', 'events', 'Number of events ever written. Their ordinals are 1, 2, 3 and so on.'),
            ('sessions', 'erased_by', 'Who erased it.'),
            ('turns', 'seq', 'Position of its open event.'),
            ('turns', 'at', 'When the message was accepted.'),
            ('turns', 'end_seq', 'Position of its done event; null: it has not ended.'),
            ('turns', 'finished_at', 'When it ended.'),
            ('turns', 'state', 'lined_up, queued, running, waiting, completed, failed or canceled.'),
            ('turns', 'outcome', 'ok, failed or canceled; null: it has not ended.'),
            ('turns', 'error', 'Code of the failure, such as model_error; null: none.'),
            ('turns', 'error_message', 'Text of the failure.'),
            ('turns', 'canceled_by_kind', 'How the request that canceled it came in: key, member or command; null: no request did.'),
            ('turns', 'canceled_by', 'Id of the key or member that canceled it.'),
            ('turns', 'canceled_protocol', 'Protocol of the request that canceled it.'),
            ('turns', 'canceled_address', 'Address of the client that canceled it.'),
            ('turns', 'canceled_request_id', 'Id of the HTTP request that canceled it.'),
            ('turns', 'active_seconds', 'Time of work, without waits for answers.'),
            ('turns', 'attempts', 'How often a worker took the turn.'),
            ('turns', 'attempt_log', 'Each begin of work with seq, at, node and its reason: first, resumed (after an answer), crash (the worker was lost), drain (its replica stopped), outage (its worker lost the database), model_retry and model_fallback with their cause.'),
            ('turns', 'prompt_sha256', 'SHA-256 of each request to a model, in the order of the steps; null elements: not recorded.'),
            ('messages', 'seq', 'Position of its first event. It orders the messages of a session.'),
            ('messages', 'at', 'When the message was accepted.'),
            ('messages', 'last_seq', 'Position of its last event.'),
            ('messages', 'message_id', 'Id of the message.'),
            ('messages', 'role', 'user or assistant.'),
            ('messages', 'content', 'Text; null: erased, or none yet.'),
            ('messages', 'label', 'Text that is shown for the call of a skill.'),
            ('messages', 'status', 'completed, in_progress, failed or canceled.'),
            ('messages', 'outcome', 'ok, failed or canceled; null: it has not ended.'),
            ('messages', 'error', 'Code of the failure; null: none.'),
            ('messages', 'error_message', 'Text of the failure.'),
            ('messages', 'structured_result', 'The answer in the schema that the message asked for; null: none.'),
            ('events', 'ordinal', 'Position in the session: 1, 2, 3 and so on. A gap is a row that is missing.'),
            ('events', 'event', 'Kind of the event.'),
            ('events', 'summary', 'First 200 characters of what a reader looks for.'),
            ('events', 'data', 'The stored JSON, without sealed reasoning and addresses that work without a key. Of other events it has the bytes that streams send.'),
            ('events', 'prompt_sha256', 'SHA-256 of the request to the model, of a reply.'),
            ('tool_calls', 'seq', 'Position of its tool_use event, which was stored before the call ran.'),
            ('tool_calls', 'at', 'When the call began.'),
            ('tool_calls', 'tool', 'Name of the tool.'),
            ('tool_calls', 'summary', 'The call in one line.'),
            ('tool_calls', 'input', 'Arguments, as the model wrote them. A secret is a placeholder.'),
            ('tool_calls', 'outcome', 'ok, failed, denied (by a rule or an answer), interrupted (it may have run), canceled (with its turn); null: it has no result yet.'),
            ('tool_calls', 'decided_by', 'What let the call run or denied it: built_in, rule, label, pattern, approval; null: nothing was asked.'),
            ('tool_calls', 'pattern', 'Pattern of the allow-list that let it run, or the rule that decided.'),
            ('tool_calls', 'approval_id', 'Id of the approval that decided.'),
            ('tool_calls', 'result_seq', 'Position of its tool_result event.'),
            ('tool_calls', 'finished_at', 'When the result was stored.'),
            ('tool_calls', 'seconds', 'Time from the begin to the result.'),
            ('tool_calls', 'output', 'First 4000 characters of the result.'),
            ('tool_calls', 'truncated', 'True if the result is longer.'),
            ('approvals', 'at', 'When the question was asked.'),
            ('approvals', 'outcome', 'pending, allowed, denied, expired or canceled.'),
            ('approvals', 'plan', 'The model''s text before the calls, or their summaries.'),
            ('approvals', 'operations', 'The calls that needed the approval, exactly as they would run.'),
            ('approvals', 'tools', 'Names of the tools of these calls.'),
            ('approvals', 'seconds', 'Time from the question to the answer.'),
            ('approvals', 'reason', 'Reason of a denial.'),
            ('approvals', 'pattern', 'Pattern that the answer added to the allow-list.'),
            ('approvals', 'separate_approver', 'True if the key of the message could not allow it.'),
            ('secret_requests', 'at', 'When the question was asked.'),
            ('secret_requests', 'secret', 'Name of the secret.'),
            ('secret_requests', 'reason', 'Reason that the model gave.'),
            ('secret_requests', 'outcome', 'pending, provided, skipped, expired or canceled.'),
            ('attachments', 'session_id', 'Id of the session; null: no message has the file.'),
            ('attachments', 'seq', 'Begin of the turn that received it, or end of the turn that produced it.'),
            ('attachments', 'at', 'When the file was created.'),
            ('attachments', 'file_id', 'Id of the file.'),
            ('attachments', 'direction', 'received or produced.'),
            ('attachments', 'filename', 'Name of the file.'),
            ('attachments', 'mime', 'Media type.'),
            ('attachments', 'size', 'Size in bytes.'),
            ('attachments', 'sha256', 'SHA-256 of the content, in hexadecimal digits.'),
            ('attachments', 'state', 'pending, fetching, ready, rejected or deleted.'),
            ('attachments', 'error', 'Code of the rejection; null: none.'),
            ('attachments', 'error_message', 'Text of the rejection.'),
            ('attachments', 'uploaded_by', 'Id of the key or member that sent it.'),
            ('attachments', 'ready_at', 'When its content was complete.'),
            ('attachments', 'deleted_at', 'When it was deleted.'),
            ('documents_read', 'path', 'Path of the document: the same for every tool that reads it.'),
            ('documents_read', 'tool', 'How it was read: wiki_read, read, grep or search.'),
            ('callbacks', 'seq', 'Position of the event that is reported.'),
            ('callbacks', 'at', 'When the report was made.'),
            ('callbacks', 'delivery_id', 'Id of the report: the webhook-id of its requests.'),
            ('callbacks', 'callback_id', 'Id of the receiver.'),
            ('callbacks', 'name', 'The caller''s name for the receiver.'),
            ('callbacks', 'protocol', 'Protocol of the report: parley, a2a/0.3 or a2a/1.0.'),
            ('callbacks', 'type', 'turn.completed, turn.failed, turn.canceled or turn.input_required.'),
            ('callbacks', 'outcome', 'ok or failed; null: it is tried again.'),
            ('callbacks', 'status', 'pending, delivered or failed.'),
            ('callbacks', 'attempts', 'Number of requests.'),
            ('callbacks', 'http_status', 'Status of the last answer; null: there was none.'),
            ('callbacks', 'last_error', 'Why the last request failed.'),
            ('callbacks', 'last_attempt_at', 'Time of the last request.'),
            ('callbacks', 'next_at', 'Time of the next request; null: there is none.'),
            ('callbacks', 'disabled_at', 'When the receiver asked for no more reports.'),
            ('usage_daily', 'day', 'Day of UTC in which the turns ended.'),
            ('usage_daily', 'at', 'Begin of that day.'),
            ('usage_daily', 'dimension', 'model, agent, key, user or tool.'),
            ('usage_daily', 'value', 'Name or id in that dimension; empty: unknown.'),
            ('usage_daily', 'turns', 'Turns that ended; of a tool: its calls.'),
            ('usage_daily', 'completed', 'Of these, the ones that were answered; of a tool: the calls without an error.'),
            ('key_use', 'at', 'When the key was created.'),
            ('key_use', 'key_id', 'Public part of the key.'),
            ('key_use', 'name', 'Name of the key.'),
            ('key_use', 'scopes', 'Scopes as granted, without implied ones.'),
            ('key_use', 'status', 'active, expired or revoked.'),
            ('key_use', 'created_by', 'Id of the key or member that created it; null: a command.'),
            ('key_use', 'member_id', 'Member of a personal token; null: a key of the workspace.'),
            ('key_use', 'browser', 'True for the short-lived token of a browser.'),
            ('key_use', 'revoked_at', 'When it was revoked.'),
            ('key_use', 'replaced_by', 'Key that replaced it.'),
            ('key_use', 'last_used_at', 'Last request, to the minute.'),
            ('key_use', 'turns', 'Turns that its messages began, as far back as daily usage reaches.'),
            ('key_use', 'cost_usd', 'Cost of these turns; null: no price was known.'),
            ('key_use', 'decisions', 'Questions that it answered.'),
            ('tool_rules_history', 'seq', 'Position in the log of changes.'),
            ('tool_rules_history', 'kind', 'rule (of a tool) or pattern (of the allow-list).'),
            ('tool_rules_history', 'tool', 'Name of the tool.'),
            ('tool_rules_history', 'pattern', 'Pattern of the allow-list.'),
            ('tool_rules_history', 'rule_before', 'allow, ask or deny; null: the built-in rule.'),
            ('tool_rules_history', 'rule_after', 'allow, ask or deny; null: the built-in rule.'),
            ('tool_rules_history', 'action', 'added, changed or removed.'),
            ('tool_rules_history', 'approval_id', 'Approval whose answer added the pattern; null: none.'),
            ('tool_rules_history', 'actor_kind', 'What made the change: key, member, command, service (a turn or an answer), database (another program).'),
            ('tool_rules_history', 'actor_id', 'Id of the key or member.'),
            ('tool_rules_history', 'actor_name', 'Name at that time.'),
            ('admin_log', 'seq', 'Position in the log of changes.'),
            ('admin_log', 'workspace_id', 'Id of the workspace; null: a change of the server.'),
            ('admin_log', 'object', 'Kind of the object: its table.'),
            ('admin_log', 'object_id', 'Id or name of the object.'),
            ('admin_log', 'action', 'insert, update or delete.'),
            ('admin_log', 'actor_kind', 'What made the change: key, member, command, service (a turn or an answer), database (another program).'),
            ('admin_log', 'actor_id', 'Id of the key or member.'),
            ('admin_log', 'actor_name', 'Name at that time.'),
            ('admin_log', 'before', 'The object before the change, without secrets; null: it is new.'),
            ('admin_log', 'after', 'The object after the change, without secrets; null: it was deleted.'),
            ('feedback', 'rating', 'good or bad; null: erased.'),
            ('feedback', 'note', 'Text of the reader.'),
            ('feedback', 'actor_kind', 'How the reader came in: key or member.'),
            ('feedback', 'actor_id', 'Id of that key or member.'),
            ('feedback', 'counts', 'True for the newest rating of the answer.')
        ) AS t (view, col, comment) ON t.col = c.column_name AND t.view IN ('', c.table_name)
        WHERE c.table_schema = 'audit'
        ORDER BY c.table_name, c.column_name, t.view DESC
    LOOP
        EXECUTE format('COMMENT ON COLUMN audit.%I.%I IS %L', r.table_name, r.column_name, r.comment);
    END LOOP;
END $do$;
-- +goose StatementEnd
