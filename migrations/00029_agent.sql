-- +goose Up

-- An agent of a workspace: a name, the version that runs, and a draft of the next one. A workspace
-- has one default agent, which answers messages that name no other.
CREATE TABLE agents (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name         text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    is_default   boolean NOT NULL DEFAULT false,
    newest       int NOT NULL DEFAULT 0,      -- number of the last version
    published_id uuid,                        -- version that runs
    draft_id     uuid,                        -- draft as it was last saved; null: none
    revision     bigint NOT NULL DEFAULT 1,   -- raised by each change; an edit names the one that it has read
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    deleted_at   timestamptz                  -- its turns keep their versions
);
CREATE UNIQUE INDEX agents_name ON agents (workspace_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX agents_default ON agents (workspace_id) WHERE is_default;

-- What an agent is. Rows are never changed: a saved draft is a row of its own, so that a turn that
-- tries the draft keeps what it began with.
CREATE TABLE agent_versions (
    id                   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    agent_id             uuid NOT NULL REFERENCES agents ON DELETE CASCADE,
    workspace_id         uuid NOT NULL,
    number               int  NOT NULL CHECK (number >= 0), -- 1, 2, 3 …; 0: a draft
    instructions         text NOT NULL,
    model                text,                -- null: the service's own model
    effort               text CHECK (effort IN ('minimal', 'low', 'medium', 'high')), -- null: the model's own
    tools                json,                -- {"bash":"changes"}: the tools offered, with their labels; null: every tool
    rules                json,                -- {"bash":"deny"}: beside the workspace's rules, whose deny wins; null: none
    max_response_seconds int  NOT NULL CHECK (max_response_seconds BETWEEN 1 AND 3600),
    max_turns            int  NOT NULL CHECK (max_turns BETWEEN 1 AND 200),
    history_tokens       int  NOT NULL CHECK (history_tokens >= 0),
    max_cost_usd         numeric(18,8) CHECK (max_cost_usd >= 0), -- of one turn; null: no limit
    author               text NOT NULL,       -- "cli:anna", "key:7F3kQ2xY"
    note                 text NOT NULL DEFAULT '',
    created_at           timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX agent_versions_number ON agent_versions (agent_id, number) WHERE number > 0;

-- The agent of each turn, as of its message. Turns of a server of the release before get theirs
-- when they start.
ALTER TABLE turns
    ADD COLUMN agent            text,
    ADD COLUMN agent_version    int,         -- 0: a draft
    ADD COLUMN agent_version_id uuid,        -- what it runs with
    ADD COLUMN skill_version    int;         -- null: no skill

-- The columns of workspaces that describe an agent are those of the default agent's published
-- version: servers of the release before read and write them. These triggers keep both equal: a
-- change of the columns is published as the next version, and a published version is copied to the
-- columns. Both lock the workspace first.
-- +goose StatementBegin
CREATE FUNCTION change_author() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE a->>'kind' WHEN 'command' THEN 'cli:' WHEN 'key' THEN 'key:' ELSE '' END
           || coalesce(CASE WHEN a->>'kind' = 'key' THEN a->>'id' END, a->>'name', a->>'id')
    FROM (SELECT nullif(current_setting('parley.actor', true), '')::json AS a) s
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION workspace_agent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a agents%ROWTYPE;
    v agent_versions%ROWTYPE;
    version uuid := gen_random_uuid();
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO agents (workspace_id, name, is_default, newest, published_id) VALUES (NEW.id, 'default', true, 1, version)
        RETURNING * INTO a;
    ELSE
        SELECT * INTO a FROM agents WHERE workspace_id = NEW.id AND is_default FOR NO KEY UPDATE;
        SELECT * INTO v FROM agent_versions WHERE id = a.published_id;
        IF (v.instructions, v.model, v.max_response_seconds, v.max_turns, v.history_tokens)
            IS NOT DISTINCT FROM (NEW.instructions, NEW.model, NEW.max_response_seconds, NEW.max_turns, NEW.history_tokens) THEN
            RETURN NULL;
        END IF;
        UPDATE agents SET newest = newest + 1, published_id = version, revision = revision + 1, updated_at = clock_timestamp() WHERE id = a.id
        RETURNING * INTO a;
    END IF;
    INSERT INTO agent_versions (id, agent_id, workspace_id, number, instructions, model, effort, tools, rules,
                                max_response_seconds, max_turns, history_tokens, max_cost_usd, author)
    VALUES (version, a.id, NEW.id, a.newest, NEW.instructions, NEW.model, v.effort, v.tools, v.rules,
            NEW.max_response_seconds, NEW.max_turns, NEW.history_tokens, v.max_cost_usd, coalesce(change_author(), 'workspace'));
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION agent_workspace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE workspaces w
    SET instructions = v.instructions, model = v.model, max_response_seconds = v.max_response_seconds,
        max_turns = v.max_turns, history_tokens = v.history_tokens, updated_at = clock_timestamp()
    FROM agent_versions v
    WHERE w.id = NEW.workspace_id AND v.id = NEW.published_id
      AND (v.instructions, v.model, v.max_response_seconds, v.max_turns, v.history_tokens)
        IS DISTINCT FROM (w.instructions, w.model, w.max_response_seconds, w.max_turns, w.history_tokens);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The first trigger locks out other changes of workspaces until all of them have an agent.
CREATE TRIGGER workspaces_agent
    AFTER INSERT OR UPDATE OF instructions, model, max_response_seconds, max_turns, history_tokens ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspace_agent();

WITH made AS (
    INSERT INTO agents (workspace_id, name, is_default, newest, published_id)
    SELECT id, 'default', true, 1, gen_random_uuid() FROM workspaces
    RETURNING id, workspace_id, published_id
)
INSERT INTO agent_versions (id, agent_id, workspace_id, number, instructions, model, max_response_seconds, max_turns, history_tokens,
                            author, note, created_at)
SELECT made.published_id, made.id, w.id, 1, w.instructions, w.model, w.max_response_seconds, w.max_turns, w.history_tokens,
       'upgrade', 'As the workspace was before agents had versions.', w.updated_at
FROM made JOIN workspaces w ON w.id = made.workspace_id;

CREATE TRIGGER agents_workspace AFTER UPDATE OF published_id ON agents
    FOR EACH ROW WHEN (NEW.is_default AND NEW.published_id IS DISTINCT FROM OLD.published_id)
    EXECUTE FUNCTION agent_workspace();

SELECT admin_log_on('agents');
SELECT admin_log_on('agent_versions');
