-- name: UserInsert :one
INSERT INTO users (id, email, name, password_hash, is_admin, oidc_subject) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (lower(email)) DO NOTHING
RETURNING *;

-- name: UserByEmail :one
SELECT * FROM users WHERE lower(email) = lower(sqlc.arg(email)::text);

-- name: UserByID :one
SELECT * FROM users WHERE id = $1;

-- name: UserBySubject :one
SELECT * FROM users WHERE oidc_subject = sqlc.arg(subject)::text;

-- name: UsersList :many
SELECT * FROM users ORDER BY lower(email) LIMIT 1000;

-- name: UserPassword :execrows
UPDATE users SET password_hash = sqlc.arg(hash)::text, updated_at = now() WHERE id = $1;

-- name: UserUpdate :one
-- Null leaves a column as it is.
UPDATE users SET
    name = COALESCE(sqlc.narg('name'), name),
    email = COALESCE(sqlc.narg('email'), email),
    is_admin = COALESCE(sqlc.narg('is_admin'), is_admin),
    oidc_subject = COALESCE(sqlc.narg('oidc_subject'), oidc_subject),
    disabled_at = CASE sqlc.narg('disabled')::boolean WHEN true THEN COALESCE(disabled_at, now()) WHEN false THEN NULL ELSE disabled_at END,
    updated_at = now()
WHERE id = @id
RETURNING *;

-- name: UserSignedIn :exec
UPDATE users SET last_login_at = now() WHERE id = $1;

-- name: UserAdminExists :one
-- UserAdminExists reports whether an administrator can sign in.
SELECT EXISTS (SELECT FROM users WHERE is_admin AND disabled_at IS NULL AND (password_hash IS NOT NULL OR oidc_subject IS NOT NULL));

-- name: UserOtherAdmins :one
-- UserOtherAdmins locks the administrators besides one and counts them.
SELECT count(*) FROM (
    SELECT id FROM users WHERE is_admin AND disabled_at IS NULL AND (password_hash IS NOT NULL OR oidc_subject IS NOT NULL) AND id <> $1 FOR UPDATE
) others;

-- name: UsersLock :exec
-- UsersLock serializes the creation of the first administrator.
SELECT pg_advisory_xact_lock(hashtextextended('parley.users', 0));

-- name: MemberPut :exec
INSERT INTO members (workspace_id, user_id, role, from_oidc) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role, from_oidc = excluded.from_oidc, updated_at = now()
WHERE members.role <> excluded.role OR members.from_oidc <> excluded.from_oidc;

-- name: MemberDelete :execrows
DELETE FROM members WHERE workspace_id = $1 AND user_id = $2;

-- name: MemberDeleteFromOIDC :exec
-- MemberDeleteFromOIDC removes the memberships that the identity provider's groups do not give any
-- more.
DELETE FROM members WHERE user_id = $1 AND from_oidc AND NOT workspace_id = ANY (sqlc.arg(kept)::uuid[]);

-- name: MembersList :many
SELECT sqlc.embed(u), m.role, m.from_oidc, m.created_at AS since
FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 ORDER BY lower(u.email) LIMIT 1000;

-- name: MemberRoles :many
-- MemberRoles lists the workspaces of a user.
SELECT w.id, w.slug, w.name, m.role FROM members m JOIN workspaces w ON w.id = m.workspace_id WHERE m.user_id = $1 ORDER BY w.slug;

-- name: MemberOwnersLock :many
-- MemberOwnersLock locks the owners of a workspace in one order, so that two changes at the same time
-- wait for each other.
SELECT user_id FROM members WHERE workspace_id = $1 AND role = 'owner' ORDER BY user_id FOR UPDATE;

-- name: WebSessionInsert :exec
INSERT INTO web_sessions (id, user_id, secret_hash, address, agent) VALUES ($1, $2, $3, $4, $5);

-- name: WebSessionByID :one
-- WebSessionByID finds a session that was seen in the last fourteen days, with its user.
SELECT sqlc.embed(s), sqlc.embed(u), (s.seen_at < now() - interval '1 minute')::boolean AS unnoted
FROM web_sessions s JOIN users u ON u.id = s.user_id
WHERE s.id = $1 AND s.seen_at > now() - interval '14 days' AND u.disabled_at IS NULL;

-- name: WebSessionSeen :exec
UPDATE web_sessions SET seen_at = now(), address = $2 WHERE id = $1;

-- name: WebSessionsList :many
SELECT * FROM web_sessions WHERE user_id = $1 AND seen_at > now() - interval '14 days' ORDER BY seen_at DESC LIMIT 200;

-- name: WebSessionDelete :execrows
DELETE FROM web_sessions WHERE user_id = $1 AND id = $2;

-- name: WebSessionDeleteOthers :execrows
-- WebSessionDeleteOthers ends the sessions of a user besides one.
DELETE FROM web_sessions WHERE user_id = $1 AND id <> $2;

-- name: WebSessionsPrune :exec
DELETE FROM web_sessions WHERE seen_at < now() - interval '14 days';

-- name: WebSessionsDead :many
-- WebSessionsDead returns those of the given sessions that are not valid any more.
SELECT k.id::text FROM unnest(sqlc.arg(ids)::text[]) AS k (id)
WHERE NOT EXISTS (
    SELECT FROM web_sessions s JOIN users u ON u.id = s.user_id WHERE s.id = k.id AND s.seen_at > now() - interval '14 days' AND u.disabled_at IS NULL
);

-- name: LoginLinkInsert :exec
INSERT INTO login_links (hash, kind, user_id, expires_at) VALUES ($1, $2, $3, now() + make_interval(secs => sqlc.arg(life)::float8));

-- name: LoginLinkGet :one
SELECT * FROM login_links WHERE hash = $1 AND kind = $2 AND expires_at > now();

-- name: LoginLinkTake :one
-- LoginLinkTake uses a link up.
DELETE FROM login_links WHERE hash = $1 AND kind = $2 AND expires_at > now() RETURNING *;

-- name: LoginLinksPrune :exec
DELETE FROM login_links WHERE expires_at < now();

-- name: LoginLinksOfUser :exec
DELETE FROM login_links WHERE user_id = $1 AND kind = $2;

-- name: LoginLinksSetup :exec
-- LoginLinksSetup ends the links for the first administrator.
DELETE FROM login_links WHERE kind = 'setup';

-- name: OIDCStateInsert :exec
INSERT INTO oidc_states (hash, nonce, verifier, next, expires_at) VALUES ($1, $2, $3, $4, now() + interval '10 minutes');

-- name: OIDCStateTake :one
DELETE FROM oidc_states WHERE hash = $1 AND expires_at > now() RETURNING *;

-- name: OIDCStatesPrune :exec
DELETE FROM oidc_states WHERE expires_at < now();

-- name: SessionViewsList :many
SELECT * FROM session_views WHERE workspace_id = $1 AND user_id = $2 ORDER BY created_at, id;

-- name: SessionViewPut :execrows
-- SessionViewPut stores a view, or the filters of the one of that name. A user has a limited number
-- in a workspace.
INSERT INTO session_views (id, workspace_id, user_id, name, filters)
SELECT sqlc.arg(id)::uuid, sqlc.arg(workspace_id)::uuid, sqlc.arg(user_id)::text, sqlc.arg(name)::text, sqlc.arg(filters)::text
WHERE (SELECT count(*) FROM session_views v
       WHERE v.workspace_id = sqlc.arg(workspace_id)::uuid AND v.user_id = sqlc.arg(user_id)::text AND v.name <> sqlc.arg(name)::text) < sqlc.arg(most)::int
ON CONFLICT (workspace_id, user_id, name) DO UPDATE SET filters = excluded.filters;

-- name: SessionViewDelete :exec
DELETE FROM session_views WHERE workspace_id = $1 AND user_id = $2 AND id = $3;
