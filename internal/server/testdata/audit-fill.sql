-- Fills a migrated database for TestAuditQuestions -audit.measure: turns of sixteen records each over
-- this month and half of the one before. psql -v turns=625000 makes ten million events.
INSERT INTO workspaces (id, slug, name) VALUES ('0192f0aa-0000-7000-8000-00000000a0d1', 'bulk', 'Bulk');

CREATE UNLOGGED TABLE bulk AS
SELECT n, (lpad(to_hex(n * 4), 8, '0') || '00007000800000000000000a')::uuid AS session_id, (lpad(to_hex(n * 4), 8, '0') || '00007000800000000000000b')::uuid AS turn_id,
       1000000000 + n::bigint * 16 AS seq,
       now() - interval '1 minute' - (:turns - n) * ((now() - (date_trunc('month', now(), 'UTC') - interval '15 days')) / :turns) AS at
FROM generate_series(1, :turns) n;

INSERT INTO sessions (id, workspace_id, title, last_seq, last_ord, turn_id, message_count, end_user, created_at, updated_at)
SELECT session_id, '0192f0aa-0000-7000-8000-00000000a0d1', 'bulk', seq + 15, 16, turn_id, 2, 'user-' || n % 5000, at, at FROM bulk;

INSERT INTO turns (id, session_id, workspace_id, state, start_seq, end_seq, epoch, max_response_seconds, max_turns, key_id, agent, agent_version, end_user, origin, created_at, started_at, finished_at, state_at)
SELECT turn_id, session_id, '0192f0aa-0000-7000-8000-00000000a0d1', CASE WHEN n % 50 = 0 THEN 'canceled' WHEN n % 25 = 0 THEN 'failed' ELSE 'completed' END, seq + 1, seq + 15, 1, 600, 50,
       'bulk' || n % 9, 'default', 1, 'user-' || n % 5000, json_build_object('protocol', 'rest', 'address', '192.0.2.1', 'request_id', 'req-' || n), at, at, at + interval '3 seconds', at + interval '3 seconds' FROM bulk;

INSERT INTO messages (id, session_id, turn_id, workspace_id, role, content, status, usage, tool_calls, first_seq, last_seq, created_at)
SELECT gen_random_uuid(), session_id, turn_id, '0192f0aa-0000-7000-8000-00000000a0d1', r.role, repeat('word ', 40), 'completed',
       CASE WHEN r.role = 'assistant' THEN '{"model":"builtin/guide","input_tokens":400,"output_tokens":120,"cost_usd":0.002}'::json END,
       CASE WHEN r.role = 'assistant' THEN '[{"tool":"wiki_read","ok":true},{"tool":"grep","ok":false}]'::json ELSE '[]' END, seq, seq + 15, at
FROM bulk CROSS JOIN (VALUES ('user'), ('assistant')) r (role);

INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
SELECT b.seq + k.i, b.session_id, b.turn_id, b.at + k.i * interval '0.2 seconds', false, k.i + 1, k.kind,
       replace(replace(k.data, '%n', (b.n % 500)::text), '%ok', (b.n % 20 <> 0)::text)::json
FROM bulk b CROSS JOIN (VALUES
    (0, 'message', '{"content":"What does the handbook say about travel and expenses in the next quarter?"}'), (1, 'open', '{"session_id":"0192f0aa-0000-7000-8000-000000000001"}'),
    (2, 'started', '{"epoch":1,"node":"1","agent":"default","agent_version":1}'),
    (3, 'reply', '{"text":"I am looking.","calls":[{"id":"call_1","tool":"wiki_read","input":{"page":"page-%n"}}],"usage":{"input_tokens":100,"output_tokens":20,"cost_usd":null,"model":"m"}}'),
    (4, 'tool_verdict', '{"tool_use_id":"call_1","verdict":"allowed","source":"built_in"}'), (5, 'tool_use', '{"v":1,"tool":"wiki_read","summary":"read page-%n","tool_use_id":"call_1"}'),
    (6, 'reference', '{"path":"page-%n","source":"wiki_read"}'), (7, 'tool_result', '{"v":1,"tool":"wiki_read","ok":true,"output":"The page says that trains come first.","tool_use_id":"call_1"}'),
    (8, 'reply', '{"calls":[{"id":"call_2","tool":"grep","input":{"pattern":"travel"}}],"usage":{"input_tokens":100,"output_tokens":20,"cost_usd":null,"model":"m"}}'),
    (9, 'tool_verdict', '{"tool_use_id":"call_2","verdict":"allowed","source":"pattern","pattern":"grep(*)"}'), (10, 'tool_use', '{"v":1,"tool":"grep","summary":"search travel","tool_use_id":"call_2"}'),
    (11, 'tool_result', '{"v":1,"tool":"grep","ok":%ok,"output":"nothing","tool_use_id":"call_2"}'),
    (12, 'reply', '{"text":"Trains come first.","usage":{"input_tokens":200,"output_tokens":80,"cost_usd":null,"model":"m"}}'),
    (13, 'usage', '{"v":1,"input_tokens":400,"output_tokens":120,"cost_usd":0.002,"model":"builtin/guide"}'),
    (14, 'structured', '{"v":1,"result":{}}'), (15, 'done', '{"v":1,"session_id":"0192f0aa-0000-7000-8000-000000000001"}')) k (i, kind, data);

INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, status, seq, request, created_at, expires_at, decided_at, decided_by)
SELECT gen_random_uuid(), '0192f0aa-0000-7000-8000-00000000a0d1', session_id, turn_id, CASE WHEN n % 3 = 0 THEN 'secret' ELSE 'approval' END,
       CASE WHEN n % 7 = 0 THEN 'expired' WHEN n % 3 = 0 THEN 'provided' ELSE 'allowed' END, seq + 4,
       '{"kind":"approval","plan":"I write.","operations":[{"tool":"wiki_write"}],"key_name":"TOKEN"}', at, at + interval '10 minutes', at + interval '1 minute', 'bulk1' FROM bulk WHERE n % 20 = 0;

INSERT INTO usage_summed (day) SELECT d::date FROM generate_series(now() - interval '60 days', now() - interval '1 day', interval '1 day') d ON CONFLICT DO NOTHING;
INSERT INTO usage_days (workspace_id, kind, subject, day, turns, completed, input_tokens, output_tokens, cost_usd)
SELECT '0192f0aa-0000-7000-8000-00000000a0d1', 'user', 'user-' || n % 5000, (at AT TIME ZONE 'UTC')::date, count(*), count(*), 400 * count(*), 120 * count(*), 0.002 * count(*)
FROM bulk WHERE at < date_trunc('day', now(), 'UTC') GROUP BY n % 5000, (at AT TIME ZONE 'UTC')::date;
DROP TABLE bulk;
