-- name: ToolServers :many
-- ToolServers are the entries of a workspace by name, all or those that are named.
SELECT * FROM tool_servers
WHERE workspace_id = $1 AND (sqlc.narg(name)::text IS NULL OR name = sqlc.narg(name)::text)
ORDER BY name;

-- name: ToolDefinitions :many
-- ToolDefinitions are the tools of entries, by name.
SELECT * FROM tool_definitions WHERE server_id = ANY(sqlc.arg(servers)::uuid[]) ORDER BY name;

-- name: ToolsUsable :many
-- ToolsUsable are the tools of a workspace that the model may be offered, with their servers.
SELECT sqlc.embed(s), sqlc.embed(d)
FROM tool_servers s JOIN tool_definitions d ON d.server_id = s.id
WHERE s.workspace_id = $1 AND s.enabled AND d.enabled AND d.definition IS NOT NULL AND d.offered IS NULL AND NOT d.missing
ORDER BY s.name, d.name;

-- name: ToolNames :many
-- ToolNames are the names of a workspace's tools as models see them.
SELECT name FROM tool_definitions WHERE workspace_id = $1 ORDER BY name;

-- name: ToolServerCount :one
SELECT count(*)::int FROM tool_servers WHERE workspace_id = $1;

-- name: ToolsLock :exec
-- ToolsLock makes changes of a workspace's tools wait for one another.
SELECT FROM workspaces WHERE id = $1 FOR NO KEY UPDATE;

-- name: ToolsAccepted :one
SELECT count(*)::int FROM tool_definitions WHERE workspace_id = $1 AND definition IS NOT NULL;

-- name: ToolServerInsert :one
INSERT INTO tool_servers (workspace_id, name, kind, url, headers, allowed, timeout_seconds, auth, auth_per, client_id, client_secret_name, scopes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (workspace_id, name) DO NOTHING
RETURNING *;

-- name: ToolServerLock :one
-- ToolServerLock is an entry for a change of its tools.
SELECT * FROM tool_servers WHERE workspace_id = $1 AND name = $2 FOR NO KEY UPDATE;

-- name: ToolServerRefreshed :exec
UPDATE tool_servers SET protocol = $2, refreshed_at = clock_timestamp(), last_error = NULL WHERE id = $1;

-- name: ToolServerEnable :execrows
UPDATE tool_servers SET enabled = $3, updated_at = clock_timestamp() WHERE workspace_id = $1 AND name = $2;

-- name: ToolServerUsed :exec
-- ToolServerUsed records the outcome of a use, a success at most once a minute.
UPDATE tool_servers
SET last_used_at = clock_timestamp(), last_error = sqlc.narg(reason),
    last_error_at = CASE WHEN sqlc.narg(reason)::text IS NULL THEN last_error_at ELSE clock_timestamp() END
WHERE id = $1 AND (last_error IS DISTINCT FROM sqlc.narg(reason) OR last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute');

-- name: ToolServerDelete :execrows
DELETE FROM tool_servers WHERE workspace_id = $1 AND name = $2;

-- name: ToolDefinitionInsert :execrows
-- ToolDefinitionInsert adds a tool. A name that another entry has already is left out.
INSERT INTO tool_definitions (workspace_id, server_id, own_name, name, definition, hash, offered, offered_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING;

-- name: ToolDefinitionOffered :exec
-- ToolDefinitionOffered records the definition that the server has now; null is the accepted one.
UPDATE tool_definitions
SET offered = $2, offered_hash = $3, missing = $4, updated_at = clock_timestamp()
WHERE id = $1 AND (offered_hash IS DISTINCT FROM $3 OR missing <> $4);

-- name: ToolDefinitionAccept :execrows
-- ToolDefinitionAccept makes the definition that waits the accepted one, if it is the one that the
-- administrator has seen.
UPDATE tool_definitions
SET definition = offered, hash = offered_hash, offered = NULL, offered_hash = NULL, updated_at = clock_timestamp()
WHERE id = $1 AND offered_hash = sqlc.arg(seen)::bytea;

-- name: ToolDefinitionSet :exec
UPDATE tool_definitions
SET label = coalesce(sqlc.narg(label), label), enabled = coalesce(sqlc.narg(enabled), enabled), updated_at = clock_timestamp()
WHERE id = $1;

-- name: ToolDefinitionPut :execrows
-- ToolDefinitionPut writes a tool that an administrator defines. A name that another entry has
-- already is left out.
INSERT INTO tool_definitions (workspace_id, server_id, own_name, name, definition, hash, label)
VALUES ($1, $2, $3, $4, $5, $6, coalesce(sqlc.narg(label), 'changes'))
ON CONFLICT (server_id, own_name) DO UPDATE
SET definition = excluded.definition, hash = excluded.hash, label = coalesce(sqlc.narg(label), tool_definitions.label), updated_at = clock_timestamp()
WHERE tool_definitions.hash <> excluded.hash OR tool_definitions.label <> coalesce(sqlc.narg(label), tool_definitions.label);

-- name: ToolDefinitionsElse :exec
-- ToolDefinitionsElse removes the tools of an entry that are not among these.
DELETE FROM tool_definitions WHERE server_id = $1 AND own_name <> ALL(sqlc.arg(own_names)::text[]);

-- name: ToolDefinitionForget :exec
-- ToolDefinitionForget removes a tool that was never accepted and is not offered any more.
DELETE FROM tool_definitions WHERE id = $1 AND definition IS NULL;
