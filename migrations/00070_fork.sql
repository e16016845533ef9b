-- +goose Up

-- A fork begins with the history of another session up to an event. It has no copy of that history:
-- readers follow the reference. There is no foreign key, because retention removes the parent alone.
ALTER TABLE sessions
    ADD COLUMN parent_id  uuid,   -- the session that it was forked from; null: it is not a fork
    ADD COLUMN parent_seq bigint, -- the end of the last turn that it has from there
    ADD COLUMN forked_by  text;   -- id of the API key or the member; null: a command

-- session_line lists a session and those whose history it continues. Of the session itself upto is
-- null; of another one the history ends with the turns that had ended at the event upto. A session
-- that was erased is the last of the line, and one that retention has removed is not in it. It is a
-- function so that PostgreSQL expects one row: what it joins to the line is then read by an index.
-- +goose StatementBegin
CREATE FUNCTION session_line(session uuid) RETURNS TABLE (id uuid, upto bigint, created_at timestamptz, erased boolean)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH RECURSIVE line AS (
        SELECT s.id, NULL::bigint AS upto, s.created_at, s.erased_at IS NOT NULL AS erased, s.parent_id, s.parent_seq, 0 AS depth
        FROM sessions s WHERE s.id = session
        UNION ALL
        SELECT p.id, least(l.upto, l.parent_seq), p.created_at, p.erased_at IS NOT NULL, p.parent_id, p.parent_seq, l.depth + 1
        FROM line l JOIN sessions p ON p.id = l.parent_id WHERE NOT l.erased AND l.depth < 64
    )
    SELECT l.id, l.upto, l.created_at, l.erased FROM line l;
END $$;
-- +goose StatementEnd

-- As before, with the origin of a fork at the end.
CREATE OR REPLACE VIEW audit.sessions AS
SELECT s.workspace_id, s.id AS session_id, s.last_seq AS seq, s.created_at AS at, s.updated_at AS last_at, w.slug AS workspace,
       s.caller_id, s.end_user, s.title, s.metadata, coalesce(t.state, 'not_started') AS state, t.id AS turn_id,
       s.message_count AS messages, s.last_ord AS events, s.input_tokens, s.output_tokens, s.cost_usd, s.erased_at, e.by AS erased_by,
       s.parent_id AS forked_from, s.parent_seq AS forked_seq, s.forked_by
FROM sessions s
JOIN workspaces w ON w.id = s.workspace_id
LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN erasures e ON e.session_id = s.id;
COMMENT ON COLUMN audit.sessions.forked_from IS 'Id of the session whose history it continues; null: it is not a fork.';
COMMENT ON COLUMN audit.sessions.forked_seq IS 'Position in that session up to which its history belongs to this one: the end of a turn.';
COMMENT ON COLUMN audit.sessions.forked_by IS 'Id of the key or member that made the fork; null: a command, or it is not a fork.';
