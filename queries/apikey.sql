-- name: APIKeyInsert :one
-- APIKeyInsert makes a key that lives for some seconds, or for ever.
INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes, loopback, webhook, created_by, member_id, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + make_interval(secs => sqlc.narg(life_seconds)::float8))
RETURNING *;

-- name: APIKeyInsertBrowser :one
-- APIKeyInsertBrowser makes a browser token. It belongs to the member whose personal token makes it,
-- and works on this machine only if its maker does.
INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes, created_by, expires_at, browser, only_session, only_user, only_agent,
    maker_id, member_id, loopback)
VALUES (sqlc.arg(id), sqlc.arg(workspace_id), sqlc.arg(name), sqlc.arg(secret_hash), sqlc.arg(last4), sqlc.arg(scopes), sqlc.arg(maker),
    now() + make_interval(secs => sqlc.arg(life_seconds)::float8), true, sqlc.narg(only_session), sqlc.narg(only_user), sqlc.narg(only_agent),
    (SELECT m.id FROM api_keys m WHERE m.id = sqlc.arg(maker)),
    coalesce((SELECT m.member_id FROM api_keys m WHERE m.id = sqlc.arg(maker)), sqlc.narg(member_id)::text),
    coalesce((SELECT m.loopback FROM api_keys m WHERE m.id = sqlc.arg(maker)), false))
RETURNING *;

-- name: BrowserTokensPurge :exec
-- BrowserTokensPurge deletes some tokens that ended more than a day ago.
DELETE FROM api_keys WHERE id IN (
    SELECT k.id FROM api_keys k WHERE k.browser AND k.expires_at < now() - interval '1 day' LIMIT 100 FOR UPDATE SKIP LOCKED);

-- name: BrowserTokensList :many
-- BrowserTokensList returns tokens that can be used now, newest first; a null maker means all.
SELECT k.* FROM api_keys k LEFT JOIN api_keys m ON m.id = k.maker_id
WHERE k.workspace_id = sqlc.arg(workspace_id) AND k.browser AND k.revoked_at IS NULL AND k.expires_at > now()
  AND (m.id IS NULL OR m.revoked_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > now()))
  AND (sqlc.narg(maker)::text IS NULL OR k.created_by = sqlc.narg(maker))
  AND (sqlc.narg(only_session)::uuid IS NULL OR k.only_session = sqlc.narg(only_session))
  AND (sqlc.narg(only_user)::text IS NULL OR k.only_user = sqlc.narg(only_user))
  AND (sqlc.narg(before_id)::text IS NULL OR (k.created_at, k.id) < (sqlc.narg(before)::timestamptz, sqlc.narg(before_id)))
ORDER BY k.created_at DESC, k.id DESC
LIMIT sqlc.arg(page);

-- name: BrowserTokenRevoke :one
-- BrowserTokenRevoke ends a token now; a null maker means any.
UPDATE api_keys SET revoked_at = now()
WHERE workspace_id = sqlc.arg(workspace_id) AND id = sqlc.arg(id) AND browser AND revoked_at IS NULL AND expires_at > now()
  AND (sqlc.narg(maker)::text IS NULL OR created_by = sqlc.narg(maker))
RETURNING *;

-- name: APIKeyByID :one
-- APIKeyByID finds a key that may be used now, and reports whether its last use is to be
-- noted. role is that of a personal token's member, '' if the token has none; a user who is disabled
-- or not a member any more has no token. A browser token ends with its maker.
SELECT sqlc.embed(k), coalesce(k.last_used_at < now() - interval '1 minute', true)::boolean AS unnoted,
       (CASE WHEN u.is_admin THEN 'owner' ELSE coalesce(m.role, '') END)::text AS role
FROM api_keys k
LEFT JOIN users u ON u.id = k.member_id AND u.disabled_at IS NULL
LEFT JOIN members m ON m.workspace_id = k.workspace_id AND m.user_id = u.id
LEFT JOIN api_keys p ON p.id = k.maker_id
WHERE k.id = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
  AND (k.member_id IS NULL OR u.is_admin OR m.role IS NOT NULL)
  AND (p.id IS NULL OR p.revoked_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > now()));

-- name: APIKeyUsed :exec
-- APIKeyUsed notes the use of a key, at most once a minute.
UPDATE api_keys SET last_used_at = now()
WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: APIKeysList :many
-- APIKeysList leaves browser tokens out. The owner of a personal token is a member.
SELECT sqlc.embed(k), coalesce(u.email, '')::text AS owner
FROM api_keys k LEFT JOIN users u ON u.id = k.member_id
WHERE k.workspace_id = $1 AND NOT k.browser ORDER BY k.created_at, k.id;

-- name: APIKeyUpdate :one
-- APIKeyUpdate changes a key that may be used now. Null leaves a column as it is.
UPDATE api_keys SET name = coalesce(sqlc.narg('name'), name),
    expires_at = CASE WHEN sqlc.arg(forever)::boolean THEN NULL ELSE coalesce(sqlc.narg('expires_at'), expires_at) END
WHERE workspace_id = sqlc.arg(workspace_id) AND id = sqlc.arg(id) AND NOT browser AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: APIKeyRevoke :execrows
-- APIKeyRevoke ends a key now. Revoking it again changes nothing.
UPDATE api_keys SET revoked_at = now() WHERE workspace_id = $1 AND id = $2 AND NOT browser AND revoked_at IS NULL;

-- name: APIKeyReplace :execrows
-- APIKeyReplace lets a rotated key live on for the overlap.
UPDATE api_keys
SET replaced_by = sqlc.arg(replaced_by), expires_at = least(expires_at, now() + make_interval(secs => sqlc.arg(overlap_seconds)::float8))
WHERE workspace_id = $1 AND id = $2 AND NOT browser AND revoked_at IS NULL AND replaced_by IS NULL;

-- name: APIKeysDead :many
-- APIKeysDead returns those of the given keys that are not valid any more.
SELECT k.id::text FROM unnest(sqlc.arg(ids)::text[]) AS k (id)
WHERE NOT EXISTS (
    SELECT FROM api_keys a LEFT JOIN users u ON u.id = a.member_id AND u.disabled_at IS NULL LEFT JOIN api_keys p ON p.id = a.maker_id
    WHERE a.id = k.id AND a.revoked_at IS NULL AND (a.expires_at IS NULL OR a.expires_at > now())
      AND (a.member_id IS NULL OR u.is_admin OR EXISTS (SELECT FROM members m WHERE m.workspace_id = a.workspace_id AND m.user_id = u.id))
      AND (p.id IS NULL OR p.revoked_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > now()))
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
