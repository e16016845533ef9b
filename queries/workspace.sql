-- name: WorkspaceInsert :one
INSERT INTO workspaces (id, slug, name, instructions, model) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (slug) DO NOTHING
RETURNING *;

-- name: WorkspaceBySlug :one
SELECT * FROM workspaces WHERE slug = $1;

-- name: WorkspaceByID :one
SELECT * FROM workspaces WHERE id = $1;

-- name: WorkspacesList :many
SELECT * FROM workspaces ORDER BY slug;

-- name: WorkspaceUpdate :one
UPDATE workspaces
SET name = $2, instructions = $3, model = $4, max_response_seconds = $5, max_turns = $6, max_running = $7, history_tokens = $8, updated_at = now()
WHERE id = $1
RETURNING *;
