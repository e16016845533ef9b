-- name: PermissionRules :many
-- PermissionRules is everything that a judgement needs, in one round trip: the rules of
-- tools, which have no id, the labels of the workspace's own tools, off for those that must not run,
-- and the allow-list, oldest first.
SELECT tool, rule, NULL::uuid AS id, NULL::timestamptz AS created_at FROM tool_rules WHERE tool_rules.workspace_id = $1
UNION ALL
SELECT d.name, CASE WHEN s.enabled AND d.enabled AND d.definition IS NOT NULL AND d.offered IS NULL AND NOT d.missing THEN d.label ELSE 'off' END,
       NULL, NULL
FROM tool_definitions d JOIN tool_servers s ON s.id = d.server_id WHERE d.workspace_id = $1
UNION ALL
SELECT tool, pattern, id, created_at FROM allowlist WHERE allowlist.workspace_id = $1 AND revoked_at IS NULL
ORDER BY created_at, id;

-- name: ToolRules :many
SELECT tool, rule, updated_at FROM tool_rules WHERE workspace_id = $1;

-- name: ToolLabels :many
-- ToolLabels are the labels of the workspace's own tools.
SELECT name, label FROM tool_definitions WHERE workspace_id = $1 ORDER BY name;

-- name: ToolRuleSet :exec
INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, $2, $3)
ON CONFLICT (workspace_id, tool) DO UPDATE SET rule = excluded.rule, updated_at = now();

-- name: ToolRuleDelete :exec
DELETE FROM tool_rules WHERE workspace_id = $1 AND tool = $2;

-- name: AllowlistInsert :execrows
-- AllowlistInsert adds a pattern. One that is in force already keeps its origin.
INSERT INTO allowlist (id, workspace_id, tool, pattern, added_by, approval_id)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (workspace_id, pattern) WHERE revoked_at IS NULL DO NOTHING;

-- name: AllowlistCount :one
SELECT count(*)::int FROM allowlist WHERE workspace_id = $1 AND revoked_at IS NULL;

-- name: AllowlistList :many
-- AllowlistList is a workspace's allow-list, oldest first, with what was revoked.
SELECT * FROM allowlist WHERE workspace_id = $1 ORDER BY created_at, id;

-- name: AllowlistRevoke :execrows
-- AllowlistRevoke ends an entry now. Revoking it again changes nothing.
UPDATE allowlist SET revoked_at = now() WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL;

-- name: AllowlistHits :exec
-- AllowlistHits adds to the uses of an entry.
UPDATE allowlist SET hits = hits + sqlc.arg(uses), last_hit_at = now() WHERE id = $1;
