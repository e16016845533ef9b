-- name: AgentsList :many
-- AgentsList is a workspace's agents with their published versions, without the instructions: the
-- default agent first.
SELECT sqlc.embed(a), v.number, v.model, v.author, v.note, v.created_at AS published_at
FROM agents a JOIN agent_versions v ON v.id = a.published_id
WHERE a.workspace_id = $1 AND a.deleted_at IS NULL
ORDER BY a.is_default DESC, a.name;

-- name: AgentFind :one
-- AgentFind is an agent by its name; null is the default agent.
SELECT * FROM agents
WHERE workspace_id = $1 AND deleted_at IS NULL AND (name = sqlc.narg(name)::text OR sqlc.narg(name)::text IS NULL AND is_default);

-- name: AgentLock :one
-- AgentLock is AgentFind for a change. The workspace is locked first, as everywhere.
SELECT sqlc.embed(a) FROM workspaces w JOIN agents a ON a.workspace_id = w.id
WHERE w.id = $1 AND a.deleted_at IS NULL AND (a.name = sqlc.narg(name)::text OR sqlc.narg(name)::text IS NULL AND a.is_default)
FOR NO KEY UPDATE OF w, a;

-- name: AgentInsert :one
INSERT INTO agents (workspace_id, name) VALUES ($1, $2)
ON CONFLICT (workspace_id, name) WHERE deleted_at IS NULL DO NOTHING
RETURNING *;

-- name: AgentPublish :one
-- AgentPublish makes a new version the one that runs. The draft is done with if it was published.
UPDATE agents
SET newest = newest + 1, published_id = sqlc.arg(version), revision = revision + 1, updated_at = clock_timestamp(),
    draft_id = CASE WHEN sqlc.arg(drop_draft)::boolean THEN NULL ELSE draft_id END
WHERE id = $1
RETURNING *;

-- name: AgentDraft :one
-- AgentDraft sets the draft; null removes it.
UPDATE agents SET draft_id = sqlc.narg(version), revision = revision + 1, updated_at = clock_timestamp() WHERE id = $1
RETURNING *;

-- name: AgentDelete :exec
UPDATE agents SET deleted_at = clock_timestamp(), draft_id = NULL, revision = revision + 1, updated_at = clock_timestamp() WHERE id = $1;

-- name: AgentVersionInsert :one
INSERT INTO agent_versions (agent_id, workspace_id, number, instructions, model, effort, fallback_models, tools, rules,
                            max_response_seconds, max_turns, history_tokens, max_cost_usd, author, note)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce(change_author(), sqlc.arg(author)), sqlc.arg(note))
RETURNING *;

-- name: AgentVersionByID :one
SELECT * FROM agent_versions WHERE id = $1;

-- name: AgentVersionByNumber :one
SELECT * FROM agent_versions WHERE agent_id = $1 AND number = $2 AND number > 0;

-- name: AgentVersions :many
-- AgentVersions is an agent's history, newest first, without the instructions.
SELECT id, number, model, author, note, created_at FROM agent_versions
WHERE agent_id = $1 AND number > 0 AND number < sqlc.arg(before)
ORDER BY number DESC LIMIT sqlc.arg(n);

-- name: AgentModel :one
-- AgentModel is the model of a version, or of the version of the default agent that runs; '' is the
-- service's own.
SELECT coalesce(v.model, '')::text AS model FROM agent_versions v
WHERE v.workspace_id = sqlc.arg(workspace_id)::uuid AND v.id = coalesce(sqlc.narg(version_id)::uuid,
    (SELECT a.published_id FROM agents a WHERE a.workspace_id = sqlc.arg(workspace_id)::uuid AND a.is_default));
