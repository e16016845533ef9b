-- Fills a fresh database. bulk.sessions is how many sessions it gets: nine tenths of them in one
-- workspace, over twenty days, with one turn each but for one long conversation. There are about
-- 4.6 events to a session. What is in progress, waits, or is still to be delivered is rare, as it
-- is in a service that keeps up.
SET client_min_messages = warning;
SET synchronous_commit = off;

-- bulk_id is a UUID of version 7: kind tells the tables apart, n their rows.
CREATE FUNCTION pg_temp.bulk_id(kind int, at timestamptz, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid
$$;

INSERT INTO workspaces (id, slug, name)
SELECT pg_temp.bulk_id(0, 'epoch', w), 'bulk-' || w, 'Workspace ' || w FROM generate_series(0, 9) w;
INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes)
SELECT 'key' || lpad(n::text, 5, '0'), pg_temp.bulk_id(0, 'epoch', n % 10), 'key ' || n, sha256(n::text::bytea), '0000', '{chat}' FROM generate_series(1, 200) n;

-- The partitions that a server has made while these days passed.
DO $$
DECLARE
    starts timestamptz := date_trunc('day', now(), 'UTC') - interval '21 days';
BEGIN
    WHILE starts < date_trunc('day', now(), 'UTC') - interval '1 day' LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF events_delta FOR VALUES FROM (%L) TO (%L)',
                       'events_delta_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD'), starts, starts + interval '1 day');
        starts := starts + interval '1 day';
    END LOOP;
END $$;

CREATE TEMP TABLE s AS
SELECT n, pg_temp.bulk_id(1, at, n) AS id, pg_temp.bulk_id(0, 'epoch', CASE WHEN n % 10 > 0 THEN 0 ELSE 1 + n / 10 % 9 END) AS workspace_id,
       CASE WHEN n % 5 > 0 THEN 'customer-' || n END AS caller_id, at,
       CASE WHEN n % 50 = 7 THEN 'none'                               -- not started
            WHEN total - n < total / 2000 THEN 'running'
            WHEN total - n < total / 1200 THEN 'queued'
            WHEN total - n < total / 1000 THEN 'waiting'
            WHEN n % 33 = 0 THEN 'failed' WHEN n % 50 = 10 THEN 'canceled' ELSE 'completed' END AS state
FROM (SELECT n, current_setting('bulk.sessions')::bigint AS total,
             now() - interval '1 minute' - (current_setting('bulk.sessions')::bigint - n) * interval '20 days' / current_setting('bulk.sessions')::bigint AS at
      FROM generate_series(1, current_setting('bulk.sessions')::bigint) n) x;

-- One turn to a session; a hundredth of the turns belong to the session n = 1.
CREATE TEMP TABLE t AS
SELECT s.n, s.id AS session_id, s.workspace_id, s.state, s.at, pg_temp.bulk_id(2, s.at, s.n) AS id, s.n * 64 AS seq,
       CASE WHEN s.at > now() - interval '6 days' THEN (2 + s.n % 3)::int ELSE 0 END AS deltas, 0 AS ord
FROM s WHERE s.state <> 'none';
INSERT INTO t
SELECT -i, s.id, s.workspace_id, 'completed', s.at + i * interval '1 second', pg_temp.bulk_id(3, s.at, i), 64 * (current_setting('bulk.sessions')::bigint + i + 1), 46,
       8 + (i - 1) * 50
FROM s, generate_series(1, greatest(4, current_setting('bulk.sessions')::bigint / 500)) i WHERE s.n = 1;
INSERT INTO t                                                          -- a message that waits behind a running turn
SELECT n, session_id, workspace_id, 'lined_up', at + interval '1 second', pg_temp.bulk_id(4, at, n), seq + 32, 0, 32 FROM t WHERE state = 'running' AND n % 2 = 0;

INSERT INTO sessions (id, workspace_id, caller_id, title, epoch, last_seq, last_ord, turn_id, message_count, input_tokens, output_tokens, created_at, updated_at)
SELECT s.id, s.workspace_id, s.caller_id, CASE WHEN s.state <> 'none' THEN 'What does page ' || s.n || ' of the handbook say?' ELSE '' END, 1,
       CASE s.state WHEN 'none' THEN 0 ELSE coalesce(o.seq, s.n * 64) + 50 END, coalesce(o.ord, 8) + 50, CASE WHEN s.state <> 'none' THEN coalesce(o.id, pg_temp.bulk_id(2, s.at, s.n)) END,
       CASE s.state WHEN 'none' THEN 0 ELSE 2 END, 2900, 380, s.at, least(now(), s.at + (s.n % 600) * interval '1 second')
FROM s LEFT JOIN (SELECT id, seq, ord FROM t WHERE n < 0 ORDER BY seq DESC LIMIT 1) o ON s.n = 1;

INSERT INTO turns (id, session_id, workspace_id, state, error, start_seq, end_seq, epoch, node, lease_until, max_response_seconds, max_turns, key_id, request_hash,
                   created_at, started_at, finished_at, state_at)
SELECT id, session_id, workspace_id, state, CASE WHEN state = 'failed' THEN 'MODEL_UNAVAILABLE' END, seq + 2, CASE WHEN done THEN seq + deltas + 4 END,
       CASE WHEN state IN ('queued', 'lined_up') THEN 0 ELSE 1 END, CASE WHEN state = 'running' THEN 1 END, CASE WHEN state = 'running' THEN now() + interval '1 day' END,
       600, 50, 'key' || lpad((1 + abs(n) % 200)::text, 5, '0'), sha256(id::text::bytea),
       at, CASE WHEN state = 'running' THEN at END, CASE WHEN done THEN at + interval '20 seconds' END, at + interval '20 seconds'
FROM (SELECT *, state IN ('completed', 'failed', 'canceled') AS done FROM t) t;

INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, status, error, first_seq, last_seq, created_at)
SELECT pg_temp.bulk_id(5 + r, at, seq), session_id, id, workspace_id, CASE r WHEN 0 THEN 'user' ELSE 'assistant' END,
       CASE WHEN r = 0 THEN 'What does page ' || n || ' of the handbook say?' WHEN state = 'completed' THEN repeat('It says so. ', 4 + abs(n)::int % 20) END,
       CASE WHEN r = 0 THEN 'completed' WHEN state IN ('failed', 'canceled', 'completed') THEN state ELSE 'in_progress' END,
       CASE WHEN r = 1 AND state = 'failed' THEN 'MODEL_UNAVAILABLE' END, seq + 1 + r, seq + 1 + r, at
FROM t CROSS JOIN generate_series(0, 1) r;

INSERT INTO events (seq, session_id, at, delta, ord, turn_id, kind, data)
SELECT t.seq + k.i, t.session_id, t.at + k.i * interval '10 milliseconds', k.kind = 'text', t.ord + k.i, t.id, k.kind,
       CASE k.kind WHEN 'text' THEN '{"text":"It says so. "}' WHEN 'message' THEN json_build_object('content', 'What does page ' || n || ' of the handbook say?')
            ELSE '{"status":"completed"}' END::json
FROM t CROSS JOIN LATERAL (
    SELECT i, CASE WHEN i = 1 THEN 'message' WHEN i = 2 THEN 'open' WHEN i = 3 THEN 'started' WHEN i = 4 + t.deltas THEN 'done' ELSE 'text' END AS kind
    FROM generate_series(1, CASE WHEN t.state = 'lined_up' OR t.state = 'queued' THEN 2 WHEN t.state = 'running' OR t.state = 'waiting' THEN 3 + t.deltas ELSE 4 + t.deltas END) i
) k;
SELECT setval('events_seq_seq', (SELECT max(last_seq) + 1000 FROM sessions));

INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, status, seq, request, created_at, expires_at, decided_at, decided_by)
SELECT pg_temp.bulk_id(7, at, seq), workspace_id, session_id, id, CASE WHEN n % 4 = 0 THEN 'secret' ELSE 'approval' END, status, seq + 3, '{"tool":"bash"}', at,
       CASE WHEN status = 'pending' THEN now() + interval '1 day' ELSE at + interval '10 minutes' END, CASE WHEN status <> 'pending' THEN at END, 'key00001'
FROM (SELECT *, CASE WHEN state = 'waiting' THEN 'pending' WHEN n % 1000 = 40 THEN 'canceled' WHEN n % 400 = 0 THEN 'expired' WHEN n % 4 = 0 THEN 'provided'
                     WHEN n % 3 = 0 THEN 'denied' ELSE 'allowed' END AS status
      FROM t WHERE n > 0 AND (n % 10 < 1 OR n % 25 = 1 OR state = 'waiting') AND state NOT IN ('queued', 'running', 'lined_up')) a;

INSERT INTO idempotency_keys (workspace_id, route, key, hash, turn_id, created_at)
SELECT workspace_id, 'sendMessage', 'once-' || id, sha256(id::text::bytea), id, at FROM t WHERE at > now() - interval '10 days';
INSERT INTO idempotent_answers (workspace_id, route, key, hash, status, answer, created_at)
SELECT workspace_id, 'cancelTurn', 'once-' || id, sha256(id::text::bytea), 200, convert_to('{"session_id":"' || session_id || '"}', 'UTF8'), at FROM t WHERE n % 10 = 3;

INSERT INTO callbacks (id, workspace_id, session_id, turn_id, url, metadata, name, created_at)
SELECT pg_temp.bulk_id(8, at, seq), workspace_id, session_id, id, '', '{}', '', at FROM t WHERE n % 8 = 2;
INSERT INTO callback_deliveries (id, callback_id, workspace_id, type, seq, status, attempts, next_at, created_at)
SELECT pg_temp.bulk_id(9, at, seq), pg_temp.bulk_id(8, at, seq), workspace_id, 'turn.completed', seq, status, 1, CASE WHEN status = 'pending' THEN now() + interval '1 hour' END, at
FROM (SELECT *, CASE WHEN n % 3200 = 2 THEN 'pending' WHEN n % 400 = 2 THEN 'failed' ELSE 'delivered' END AS status FROM t WHERE n % 8 = 2) d;
INSERT INTO callback_attempts (delivery_id, n, at, status, latency_ms)
SELECT pg_temp.bulk_id(9, at, seq), 1, at, 200, 30 FROM t WHERE n % 8 = 2;

INSERT INTO files (id, workspace_id, direction, state, filename, mime, unrestricted, session_id, turn_id, call_id, created_at)
SELECT pg_temp.bulk_id(10, at, seq), workspace_id, CASE WHEN n % 200 > 0 THEN 'in' ELSE 'out' END,
       CASE WHEN n % 4000 = 0 THEN 'deleted' WHEN n % 4000 = 5 THEN 'fetching' WHEN n % 800 = 5 THEN 'rejected' WHEN n % 800 = 10 THEN 'pending' ELSE 'ready' END, 'report.csv', 'text/csv', false,
       CASE WHEN n % 200 = 0 THEN session_id END, CASE WHEN n % 200 = 0 THEN id END, CASE WHEN n % 200 = 0 THEN 'call_1' END, at
FROM t WHERE n % 5 = 0 AND state <> 'lined_up';
INSERT INTO turn_files (turn_id, file_id, workspace_id, n)
SELECT id, pg_temp.bulk_id(10, at, seq), workspace_id, 0 FROM t WHERE n % 5 = 0 AND n % 200 > 0 AND state <> 'lined_up';

INSERT INTO egress_requests (workspace_id, session_id, turn_id, call_id, at, method, scheme, host, path, credentials, refused, decision, status)
SELECT workspace_id, session_id, id, 'call_1', at, 'GET', 'https', 'api.example.com', '/' || n, '{}', '{}', 'allowed', 200 FROM t WHERE n % 5 = 1 ORDER BY at;
INSERT INTO erasures (session_id, workspace_id, by, at) SELECT id, workspace_id, 'cli', at FROM s WHERE n % 500 = 9;
UPDATE sessions SET erased_at = now(), title = '', caller_id = NULL FROM s WHERE sessions.id = s.id AND s.n % 500 = 9;

INSERT INTO workdirs (session_id, workspace_id, epoch, version, files, updated_at) SELECT session_id, workspace_id, 1, 1, 2, at FROM t WHERE n % 50 = 3;
INSERT INTO work_blobs (id, workspace_id, sha256, size, loose_at)
SELECT pg_temp.bulk_id(11, at, seq * 2 + f), workspace_id, sha256((session_id || '/' || f)::bytea), 100, CASE WHEN n % 5000 = 3 THEN now() END FROM t, generate_series(0, 1) f WHERE n % 50 = 3;
INSERT INTO work_files (session_id, workspace_id, path, kind, executable, size, sha256)
SELECT session_id, workspace_id, convert_to('notes-' || f || '.md', 'UTF8'), 'file', false, 100, sha256((session_id || '/' || f)::bytea) FROM t, generate_series(0, 1) f WHERE n % 50 = 3;

INSERT INTO documents (workspace_id, path, title, content)
SELECT pg_temp.bulk_id(0, 'epoch', w), CASE WHEN n % 2 = 0 THEN 'wiki/page-' ELSE 'policies/rule-' END || n || '.md', 'Page ' || n, repeat('Text of a page. ', 50)
FROM generate_series(0, 9) w, generate_series(1, 300) n;
INSERT INTO skills (id, workspace_id, name, fold, status, newest, active)
SELECT pg_temp.bulk_id(12, 'epoch', w * 1000 + n), pg_temp.bulk_id(0, 'epoch', w), 'skill-' || n, 'skill-' || n, 'active', 3, 3 FROM generate_series(0, 9) w, generate_series(1, 100) n;
INSERT INTO skill_versions (skill_id, version, workspace_id, description, document)
SELECT pg_temp.bulk_id(12, 'epoch', w * 1000 + n), v, pg_temp.bulk_id(0, 'epoch', w), 'A skill.', '# Do it' FROM generate_series(0, 9) w, generate_series(1, 100) n, generate_series(1, 3) v;
INSERT INTO allowlist (id, workspace_id, tool, pattern, added_by)
SELECT pg_temp.bulk_id(13, now(), w * 1000 + n), pg_temp.bulk_id(0, 'epoch', w), 'bash', 'bash(make ' || n || ')', 'cli' FROM generate_series(0, 9) w, generate_series(1, 100) n;
DROP TABLE s, t;
