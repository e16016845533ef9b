-- name: ModelProviders :many
-- ModelProviders are the providers of a workspace by name, all or the one that is named.
SELECT * FROM model_providers
WHERE workspace_id = $1 AND (sqlc.narg(name)::text IS NULL OR name = sqlc.narg(name)::text)
ORDER BY name;

-- name: ModelProviderCount :one
SELECT count(*)::int FROM model_providers WHERE workspace_id = sqlc.arg(workspace_id) AND name <> sqlc.arg(besides);

-- name: ModelProviderPut :one
-- ModelProviderPut adds or replaces a provider.
INSERT INTO model_providers (workspace_id, name, kind, base_url, credential, timeout_seconds)
VALUES ($1, $2, $3, $4, sqlc.narg(credential), $5)
ON CONFLICT (workspace_id, name) DO UPDATE
SET kind = excluded.kind, base_url = excluded.base_url, credential = excluded.credential, timeout_seconds = excluded.timeout_seconds,
    updated_at = clock_timestamp()
RETURNING *;

-- name: ModelProviderDelete :execrows
DELETE FROM model_providers WHERE workspace_id = $1 AND name = $2;
