-- +goose Up

-- What a workspace, a key or an end user may spend in a day of UTC.
CREATE TABLE budgets (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('workspace', 'key', 'user')),
    subject      text NOT NULL DEFAULT '',   -- key id or user; '' of a key or a user: each one without a budget of its own
    max_cost_usd numeric(18,8) CHECK (max_cost_usd >= 0), -- null: no limit
    max_tokens   bigint CHECK (max_tokens >= 0),          -- input and output; null: no limit
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, kind, subject),
    CHECK (kind <> 'workspace' OR subject = ''),
    CHECK (max_cost_usd IS NOT NULL OR max_tokens IS NOT NULL)
);
SELECT admin_log_on('budgets');

-- What replies of models have cost today and yesterday, in workspaces with a budget. The use of one
-- subject is the sum of several rows, so that turns that end a step at the same time rarely wait for
-- each other.
CREATE TABLE budget_use (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    day          date NOT NULL,              -- of UTC, PostgreSQL's clock
    kind         text NOT NULL,
    subject      text NOT NULL,              -- as budget_subject has it
    shard        int  NOT NULL,
    cost_usd     numeric(18,8) NOT NULL,
    tokens       bigint NOT NULL,
    PRIMARY KEY (workspace_id, day, kind, subject, shard)
) WITH (fillfactor = 50);                    -- every count is a HOT update

-- The counts name users by a hash: an erasure need not look for them.
CREATE FUNCTION budget_subject(kind text, subject text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN kind = 'user' THEN encode(sha256(convert_to(subject, 'UTF8')), 'hex') ELSE subject END
$$;

-- A request and a claim learn from the row of the workspace, which they read in any case, whether
-- there are budgets to look at.
ALTER TABLE workspaces ADD COLUMN budgeted boolean NOT NULL DEFAULT false;
DROP TRIGGER admin_log ON workspaces;
SELECT admin_log_on('workspaces', '{}', '{budgeted}');

-- With the first budget of a workspace, the turns that have ended today are counted.
-- +goose StatementBegin
CREATE FUNCTION budgets_flag() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    today timestamptz := date_trunc('day', clock_timestamp(), 'UTC');
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE workspaces SET budgeted = false
        WHERE id = OLD.workspace_id AND NOT EXISTS (SELECT FROM budgets WHERE workspace_id = OLD.workspace_id);
        RETURN NULL;
    END IF;
    UPDATE workspaces SET budgeted = true WHERE id = NEW.workspace_id AND NOT budgeted;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM budget_use WHERE workspace_id = NEW.workspace_id;
    INSERT INTO budget_use (workspace_id, day, kind, subject, shard, cost_usd, tokens)
    SELECT NEW.workspace_id, (today AT TIME ZONE 'UTC')::date, s.kind, budget_subject(s.kind, s.subject), 0,
           sum(coalesce((m.usage ->> 'cost_usd')::numeric, 0)),
           sum(coalesce((m.usage ->> 'input_tokens')::bigint, 0) + coalesce((m.usage ->> 'output_tokens')::bigint, 0))
    FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant' AND m.usage IS NOT NULL
    CROSS JOIN LATERAL (VALUES ('workspace', ''), ('key', t.key_id), ('user', t.end_user)) AS s (kind, subject)
    WHERE t.workspace_id = NEW.workspace_id AND t.finished_at >= today AND s.subject IS NOT NULL
    GROUP BY s.kind, s.subject;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER budgets_flag AFTER INSERT OR DELETE ON budgets FOR EACH ROW EXECUTE FUNCTION budgets_flag();
