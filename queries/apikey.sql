-- name: APIKeyInsert :one
-- APIKeyInsert makes a key that lives for some seconds, or for ever.
INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes, loopback, webhook, created_by, member_id, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + make_interval(secs => sqlc.narg(life_seconds)::float8))
RETURNING *;

-- name: APIKeyByID :one
-- APIKeyByID finds a key that may be used now, and reports whether its last use is to be
-- noted. role is that of a personal token's member, '' if the token has none; a user who is disabled
-- or not a member any more has no token.
SELECT sqlc.embed(k), coalesce(k.last_used_at < now() - interval '1 minute', true)::boolean AS unnoted,
       (CASE WHEN u.is_admin THEN 'owner' ELSE coalesce(m.role, '') END)::text AS role
FROM api_keys k
LEFT JOIN users u ON u.id = k.member_id AND u.disabled_at IS NULL
LEFT JOIN members m ON m.workspace_id = k.workspace_id AND m.user_id = u.id
WHERE k.id = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
  AND (k.member_id IS NULL OR u.is_admin OR m.role IS NOT NULL);

-- name: APIKeyUsed :exec
-- APIKeyUsed notes the use of a key, at most once a minute.
UPDATE api_keys SET last_used_at = now()
WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: APIKeysList :many
SELECT * FROM api_keys WHERE workspace_id = $1 ORDER BY created_at, id;

-- name: APIKeyUpdate :one
-- APIKeyUpdate changes a key that may be used now. Null leaves a column as it is.
UPDATE api_keys SET name = coalesce(sqlc.narg('name'), name),
    expires_at = CASE WHEN sqlc.arg(forever)::boolean THEN NULL ELSE coalesce(sqlc.narg('expires_at'), expires_at) END
WHERE workspace_id = sqlc.arg(workspace_id) AND id = sqlc.arg(id) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: APIKeyRevoke :execrows
-- APIKeyRevoke ends a key now. Revoking it again changes nothing.
UPDATE api_keys SET revoked_at = now() WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL;

-- name: APIKeyReplace :execrows
-- APIKeyReplace lets a rotated key live on for the overlap.
UPDATE api_keys
SET replaced_by = sqlc.arg(replaced_by), expires_at = least(expires_at, now() + make_interval(secs => sqlc.arg(overlap_seconds)::float8))
WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL AND replaced_by IS NULL;

-- name: APIKeysDead :many
-- APIKeysDead returns those of the given keys that are not valid any more.
SELECT k.id::text FROM unnest(sqlc.arg(ids)::text[]) AS k (id)
WHERE NOT EXISTS (
    SELECT FROM api_keys a LEFT JOIN users u ON u.id = a.member_id AND u.disabled_at IS NULL
    WHERE a.id = k.id AND a.revoked_at IS NULL AND (a.expires_at IS NULL OR a.expires_at > now())
      AND (a.member_id IS NULL OR u.is_admin OR EXISTS (SELECT FROM members m WHERE m.workspace_id = a.workspace_id AND m.user_id = u.id))
);

-- name: APIKeySucceeds :one
-- APIKeySucceeds reports whether an API key is another one or has replaced it, directly or over
-- keys in between.
WITH RECURSIVE line AS (
    SELECT k.id, k.replaced_by FROM api_keys k WHERE k.workspace_id = sqlc.arg(workspace_id) AND k.id = sqlc.arg(earlier)::text
    UNION
    SELECT n.id, n.replaced_by FROM api_keys n JOIN line l ON n.id = l.replaced_by
)
SELECT EXISTS (SELECT 1 FROM line WHERE id = sqlc.arg(later)::text);
