-- name: SkillActive :one
-- SkillActive is the version of a skill that runs now.
SELECT s.id, s.name, v.version, v.description, v.document, v.contract
FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.version = s.active
WHERE s.workspace_id = $1 AND s.fold = $2;

-- name: SkillNames :many
-- SkillNames lists the names to suggest for an unknown one.
SELECT s.name FROM skills s
WHERE s.workspace_id = $1 AND (s.status = 'active' OR NOT sqlc.arg(only_active)::boolean)
ORDER BY s.fold COLLATE "C";

-- name: SkillLock :one
-- SkillLock finds a skill, or makes it, and holds its row.
INSERT INTO skills (id, workspace_id, name, fold) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, fold) DO UPDATE SET fold = excluded.fold
RETURNING *;

-- name: SkillFind :one
-- SkillFind finds a skill and holds its row.
SELECT * FROM skills WHERE workspace_id = $1 AND fold = $2 FOR UPDATE;

-- name: SkillRename :exec
UPDATE skills SET name = $3 WHERE workspace_id = $1 AND id = $2;

-- name: SkillVersionInsert :exec
-- SkillVersionInsert stores the next version of a skill, whose row is held.
WITH skill AS (
    UPDATE skills SET newest = newest + 1, updated_at = now()
    WHERE id = sqlc.arg(skill_id) AND workspace_id = sqlc.arg(workspace_id)
    RETURNING id, newest
)
INSERT INTO skill_versions (skill_id, version, workspace_id, description, document, contract)
SELECT skill.id, skill.newest, sqlc.arg(workspace_id), sqlc.arg(description), sqlc.arg(document), sqlc.narg(contract) FROM skill;

-- name: SkillDocument :one
SELECT document FROM skill_versions WHERE workspace_id = $1 AND skill_id = $2 AND version = $3;

-- name: SkillPublish :exec
UPDATE skills SET status = 'active', active = sqlc.arg(version)::int, updated_at = now()
WHERE workspace_id = $1 AND id = $2;

-- name: SkillArchive :exec
UPDATE skills SET status = 'archived', active = NULL, updated_at = now() WHERE workspace_id = $1 AND id = $2;

-- name: SkillChangeInsert :exec
INSERT INTO skill_changes (workspace_id, skill_id, action, version, actor) VALUES ($1, $2, $3, $4, $5);

-- name: SkillVersion :one
-- SkillVersion is one version of a skill; 0 is the newest.
SELECT s.id, s.name, s.status, s.active, s.newest, v.version, v.description, v.document, v.contract, v.created_at
FROM skills s JOIN skill_versions v ON v.skill_id = s.id
WHERE s.workspace_id = $1 AND s.fold = $2 AND v.version = coalesce(nullif(sqlc.arg(version)::int, 0), s.newest);

-- name: SkillsList :many
-- SkillsList describes each skill by the version that runs, or else by the newest.
SELECT s.name, s.status, s.active, s.newest, v.version, v.description, v.contract, s.created_at, s.updated_at
FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.version = coalesce(s.active, s.newest)
WHERE s.workspace_id = $1
ORDER BY s.fold COLLATE "C";

-- name: SkillChanges :many
-- SkillChanges is what was done to a skill, in order.
SELECT c.action, c.version, c.actor, c.at FROM skill_changes c JOIN skills s ON s.id = c.skill_id
WHERE s.workspace_id = $1 AND s.fold = $2
ORDER BY c.id;
