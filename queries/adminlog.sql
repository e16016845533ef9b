-- name: AdminLogPage :many
-- AdminLogPage is one page of the log of changes, newest first. Triggers write the log.
SELECT id, at, workspace_id, object, object_id, action, actor_kind, actor_id, actor_name, address, request_id, before, after FROM admin_log
WHERE (workspace_id = sqlc.narg(workspace) OR sqlc.narg(workspace) IS NULL)
  AND (object = sqlc.narg(object) OR sqlc.narg(object) IS NULL)
  AND (object_id = sqlc.narg(object_id) OR sqlc.narg(object_id) IS NULL)
  AND (actor_id = sqlc.narg(actor) OR sqlc.narg(actor) IS NULL)
  AND (id < sqlc.narg(before_id) OR sqlc.narg(before_id) IS NULL)
ORDER BY id DESC LIMIT sqlc.arg(page);

-- name: AdminLogPosition :one
-- AdminLogPosition is the snapshot of this statement: it shows the changes that are committed.
SELECT pg_current_snapshot()::text AS position;
