-- +goose Up

-- Whether the provider's summaries of its reasoning are requested, stored and sent.
ALTER TABLE workspaces ADD COLUMN reasoning_summaries boolean NOT NULL DEFAULT false;

-- audit.frames of migration 56, with the frames of reasoning. They are deltas like text, but not a part
-- of the answer.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit.frames(session uuid)
RETURNS TABLE (turn_id uuid, seq bigint, event text, at timestamptz, stored boolean, bytes bytea)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH turn AS (
        SELECT t.id, t.start_seq, m.content, coalesce(m.content <> coalesce(
                   (SELECT string_agg(e.data ->> 'text', '' ORDER BY e.seq) FROM events e
                    WHERE e.session_id = t.session_id AND e.turn_id = t.id AND e.kind = 'text'), ''), false) AS lost
        FROM turns t LEFT JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
        WHERE t.session_id = session
    ), shown AS (
        SELECT turn.start_seq, e.turn_id, e.seq, e.kind, e.at, false AS stored, e.data::text AS data,
               CASE WHEN turn.lost AND e.kind IN ('usage', 'structured', 'attachment', 'error', 'done') THEN 2 ELSE 0 END AS part
        FROM turn JOIN events e ON e.session_id = session AND e.turn_id = turn.id
        WHERE NOT (turn.lost AND e.kind = 'text') AND e.data::text <> '{}'
          AND e.kind IN ('open', 'text', 'reasoning', 'tool_use', 'tool_result', 'input_required', 'tool_required', 'connect_required', 'usage',
                         'structured', 'attachment', 'attachment_rejected', 'error', 'done')
        UNION ALL
        SELECT turn.start_seq, turn.id, NULL, 'text', NULL, true, '{"v":1,"text":' || to_json(turn.content)::text || '}', 1
        FROM turn WHERE turn.lost
    )
    SELECT s.turn_id, s.seq, s.kind, s.at, s.stored,
           convert_to(CASE s.kind WHEN 'open' THEN E'retry: 2000\n' WHEN 'done' THEN E'retry: 60000\n' ELSE '' END
               || 'event: ' || s.kind || E'\n' || coalesce('id: ' || s.seq || E'\n', '') || 'data: ' || s.data || E'\n\n', 'UTF8')
    FROM shown s ORDER BY s.start_seq, s.part, s.seq
$$;
-- +goose StatementEnd

-- +goose Down

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit.frames(session uuid)
RETURNS TABLE (turn_id uuid, seq bigint, event text, at timestamptz, stored boolean, bytes bytea)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH turn AS (
        SELECT t.id, t.start_seq, m.content, coalesce(m.content <> coalesce(
                   (SELECT string_agg(e.data ->> 'text', '' ORDER BY e.seq) FROM events e
                    WHERE e.session_id = t.session_id AND e.turn_id = t.id AND e.delta), ''), false) AS lost
        FROM turns t LEFT JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
        WHERE t.session_id = session
    ), shown AS (
        SELECT turn.start_seq, e.turn_id, e.seq, e.kind, e.at, false AS stored, e.data::text AS data,
               CASE WHEN turn.lost AND e.kind IN ('usage', 'structured', 'attachment', 'error', 'done') THEN 2 ELSE 0 END AS part
        FROM turn JOIN events e ON e.session_id = session AND e.turn_id = turn.id
        WHERE NOT (turn.lost AND e.delta) AND e.data::text <> '{}'
          AND e.kind IN ('open', 'text', 'tool_use', 'tool_result', 'input_required', 'tool_required', 'connect_required', 'usage',
                         'structured', 'attachment', 'attachment_rejected', 'error', 'done')
        UNION ALL
        SELECT turn.start_seq, turn.id, NULL, 'text', NULL, true, '{"v":1,"text":' || to_json(turn.content)::text || '}', 1
        FROM turn WHERE turn.lost
    )
    SELECT s.turn_id, s.seq, s.kind, s.at, s.stored,
           convert_to(CASE s.kind WHEN 'open' THEN E'retry: 2000\n' WHEN 'done' THEN E'retry: 60000\n' ELSE '' END
               || 'event: ' || s.kind || E'\n' || coalesce('id: ' || s.seq || E'\n', '') || 'data: ' || s.data || E'\n\n', 'UTF8')
    FROM shown s ORDER BY s.start_seq, s.part, s.seq
$$;
-- +goose StatementEnd
ALTER TABLE workspaces DROP COLUMN reasoning_summaries;
