-- name: WorkspaceInsert :one
-- The settings of the agent are those of its first version.
INSERT INTO workspaces (id, slug, name, instructions, model, max_response_seconds, max_turns, history_tokens)
VALUES ($1, $2, $3, coalesce(sqlc.narg(instructions)::text, ''), nullif(sqlc.narg(model)::text, ''), coalesce(sqlc.narg(max_response_seconds)::int, 600),
        coalesce(sqlc.narg(max_turns)::int, 50), coalesce(sqlc.narg(history_tokens)::int, 2147483647))
ON CONFLICT (slug) DO NOTHING
RETURNING *;

-- name: WorkspaceBySlug :one
SELECT * FROM workspaces WHERE slug = $1;

-- name: WorkspaceByID :one
SELECT * FROM workspaces WHERE id = $1;

-- name: WorkspacesList :many
SELECT * FROM workspaces ORDER BY slug;

-- name: WorkspaceUpdate :one
-- Null leaves a column as it is; the empty model is the service's own, and so are
-- limits of -1. seen is the time of the change that the caller has read.
UPDATE workspaces
SET name = COALESCE(sqlc.narg('name'), name),
    instructions = COALESCE(sqlc.narg('instructions'), instructions),
    model = NULLIF(COALESCE(sqlc.narg('model'), model), ''),
    max_response_seconds = COALESCE(sqlc.narg('max_response_seconds'), max_response_seconds),
    max_turns = COALESCE(sqlc.narg('max_turns'), max_turns),
    max_running = COALESCE(sqlc.narg('max_running'), max_running),
    history_tokens = COALESCE(sqlc.narg('history_tokens'), history_tokens),
    messages_per_minute = NULLIF(COALESCE(sqlc.narg('messages_per_minute'), messages_per_minute), -1),
    calls_per_minute = NULLIF(COALESCE(sqlc.narg('calls_per_minute'), calls_per_minute), -1),
    storage_quota = COALESCE(sqlc.narg('storage_quota'), storage_quota),
    open_streams = NULLIF(COALESCE(sqlc.narg('open_streams'), open_streams), -1),
    separate_approver = COALESCE(sqlc.narg('separate_approver'), separate_approver),
    admin_patterns = COALESCE(sqlc.narg('admin_patterns'), admin_patterns),
    caller_instructions = COALESCE(sqlc.narg('caller_instructions'), caller_instructions),
    caller_parameters = COALESCE(sqlc.narg('caller_parameters'), caller_parameters),
    fallback_models = COALESCE(sqlc.narg('fallback_models')::text[], fallback_models),
    search_language = COALESCE(sqlc.narg('search_language'), search_language),
    reasoning_summaries = COALESCE(sqlc.narg('reasoning_summaries'), reasoning_summaries),
    updated_at = now()
WHERE id = @id AND (sqlc.narg('seen')::timestamptz IS NULL OR updated_at = sqlc.narg('seen'))
RETURNING *;

-- name: StorageOf :one
-- StorageOf is what a workspace has stored, in bytes, and its quota.
SELECT w.storage_quota AS quota, coalesce(s.files, 0)::bigint AS files, coalesce(s.folders, 0)::bigint AS folders, coalesce(s.documents, 0)::bigint AS documents
FROM workspaces w LEFT JOIN workspace_storage s ON s.workspace_id = w.id WHERE w.id = $1;

-- name: StorageAll :many
-- StorageAll is what each workspace has stored, in bytes.
SELECT * FROM workspace_storage;

-- name: WorkspaceDelete :execrows
-- WorkspaceDelete removes a workspace, and with it all rows that belong to it.
DELETE FROM workspaces WHERE id = $1;

-- name: WorkspacePause :execrows
-- WorkspacePause stops the agents of a workspace, or lets them run again if by is null. The time of
-- an earlier pause stays.
UPDATE workspaces
SET paused_at = CASE WHEN sqlc.narg(by)::text IS NOT NULL THEN coalesce(paused_at, clock_timestamp()) END,
    paused_by = CASE WHEN sqlc.narg(by)::text IS NOT NULL THEN coalesce(paused_by, sqlc.narg(by)::text) END
WHERE id = $1;

-- name: ServerPause :exec
-- ServerPause is WorkspacePause for all workspaces.
UPDATE server_state
SET paused_at = CASE WHEN sqlc.narg(by)::text IS NOT NULL THEN coalesce(paused_at, clock_timestamp()) END,
    paused_by = CASE WHEN sqlc.narg(by)::text IS NOT NULL THEN coalesce(paused_by, sqlc.narg(by)::text) END;

-- name: ServerPaused :one
SELECT paused_at, paused_by FROM server_state;
