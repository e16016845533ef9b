-- +goose Up

-- The models that answer in place of the agent's model that fails, in this order; null: those of the
-- workspace.
ALTER TABLE agent_versions ADD COLUMN fallback_models text[];

-- A change of the workspace's columns keeps the rest of the published version.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION workspace_agent() RETURNS trigger LANGUAGE plpgsql AS $$
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
    INSERT INTO agent_versions (id, agent_id, workspace_id, number, instructions, model, effort, fallback_models, tools, rules,
                                max_response_seconds, max_turns, history_tokens, max_cost_usd, author)
    VALUES (version, a.id, NEW.id, a.newest, NEW.instructions, NEW.model, v.effort, v.fallback_models, v.tools, v.rules,
            NEW.max_response_seconds, NEW.max_turns, NEW.history_tokens, v.max_cost_usd, coalesce(change_author(), 'workspace'));
    RETURN NULL;
END
$$;
-- +goose StatementEnd
