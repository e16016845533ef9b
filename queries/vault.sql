-- name: VaultKeysLock :exec
-- VaultKeysLock lets one process at a time bring its keys.
LOCK TABLE vault_keys IN SHARE ROW EXCLUSIVE MODE;

-- name: VaultKeys :many
SELECT id, proof FROM vault_keys ORDER BY created_at, id;

-- name: VaultKeyAdd :exec
INSERT INTO vault_keys (id, proof) VALUES ($1, $2);

-- name: VaultKeysRetire :many
-- VaultKeysRetire takes every other key out of use. It fails while a credential is
-- sealed under one.
DELETE FROM vault_keys WHERE id <> sqlc.arg(newest) RETURNING id;

-- name: CredentialLock :one
-- CredentialLock locks a name: the next change of the credential waits. Version
-- 0 is a name that was not used before.
INSERT INTO credentials (workspace_id, name, removed_at) VALUES ($1, $2, now())
ON CONFLICT (workspace_id, name) DO UPDATE SET name = excluded.name
RETURNING *;

-- name: CredentialFind :one
-- CredentialFind reads a credential to change it.
SELECT * FROM credentials WHERE workspace_id = $1 AND name = $2 AND removed_at IS NULL FOR UPDATE;

-- name: CredentialPut :one
UPDATE credentials
SET version = $3, allowed_hosts = $4, in_query = $5, in_body = $6, allow_http = $7, value = $8,
    updated_by = $9, updated_at = now(), removed_at = NULL
WHERE workspace_id = $1 AND name = $2
RETURNING *;

-- name: CredentialRemove :one
-- CredentialRemove forgets the value. The row stays for its version: no later
-- credential of this name gets one that was used before.
UPDATE credentials
SET version = version + 1, value = NULL, updated_by = $3, updated_at = now(), removed_at = now()
WHERE workspace_id = $1 AND name = $2 AND removed_at IS NULL
RETURNING *;

-- name: Credentials :many
SELECT * FROM credentials WHERE workspace_id = $1 AND removed_at IS NULL ORDER BY name;

-- name: CredentialNote :exec
INSERT INTO credential_uses (workspace_id, name, version, what, allowed_hosts, by) VALUES ($1, $2, $3, $4, $5, $6);
