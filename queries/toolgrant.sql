-- name: ToolGrant :one
SELECT * FROM tool_grants WHERE server_id = $1 AND holder = $2;

-- name: ToolGrantClaim :execrows
-- ToolGrantClaim lets one replica refresh the tokens of a version. The claim ends by itself if the
-- replica does not end it.
UPDATE tool_grants SET refreshing_until = clock_timestamp() + make_interval(secs => sqlc.arg(seconds)::float8)
WHERE id = sqlc.arg(id) AND version = sqlc.arg(version) AND (refreshing_until IS NULL OR refreshing_until < clock_timestamp());

-- name: ToolGrantRefresh :one
-- ToolGrantRefresh stores refreshed tokens in place of the version that they come from.
UPDATE tool_grants SET version = nextval('tool_grant_versions'), tokens = sqlc.arg(tokens)::sealed, expires_at = sqlc.narg(expires_at)::timestamptz,
    refreshing_until = NULL, updated_at = clock_timestamp()
WHERE id = sqlc.arg(id) AND version = sqlc.arg(version)
RETURNING *;

-- name: ToolGrantRelease :exec
-- ToolGrantRelease ends a claim without other tokens.
UPDATE tool_grants SET refreshing_until = NULL WHERE id = $1 AND version = $2;

-- name: ToolGrantPut :one
-- ToolGrantPut stores the tokens of a holder in place of the earlier ones. It is another grant, which
-- has another id; a refresh keeps the id. A server that was removed gets none.
INSERT INTO tool_grants (workspace_id, server_id, holder, tokens, issuer, scopes, expires_at)
SELECT s.workspace_id, s.id, sqlc.arg(holder), sqlc.arg(tokens)::sealed, sqlc.arg(issuer), sqlc.arg(scopes)::text[], sqlc.narg(expires_at)::timestamptz
FROM tool_servers s WHERE s.id = sqlc.arg(server_id)
ON CONFLICT (server_id, holder) DO UPDATE
SET id = excluded.id, version = excluded.version, refreshing_until = NULL, tokens = excluded.tokens, issuer = excluded.issuer, scopes = excluded.scopes,
    expires_at = excluded.expires_at, updated_at = clock_timestamp()
RETURNING *;

-- name: ToolGrantDelete :exec
-- ToolGrantDelete removes the version of a grant that does not work any more.
DELETE FROM tool_grants WHERE id = $1 AND version = $2;

-- name: ToolGrants :many
-- ToolGrants are the grants of an entry.
SELECT g.* FROM tool_grants g JOIN tool_servers s ON s.id = g.server_id
WHERE s.workspace_id = $1 AND s.name = $2 ORDER BY g.holder;

-- name: ToolGrantRemove :execrows
DELETE FROM tool_grants g USING tool_servers s
WHERE s.id = g.server_id AND s.workspace_id = $1 AND s.name = $2 AND g.id = $3;

-- name: ToolGrantsErase :exec
-- ToolGrantsErase removes the grants of the caller of a session.
DELETE FROM tool_grants g USING sessions s
WHERE s.id = $1 AND g.workspace_id = s.workspace_id AND s.caller_id IS NOT NULL AND g.holder = 'caller:' || s.caller_id;

-- name: ToolLinksErase :exec
DELETE FROM tool_links WHERE session_id = $1;

-- name: ToolClient :one
SELECT client FROM tool_clients WHERE server_id = $1 AND issuer = $2 AND redirect_url = $3;

-- name: ToolClientPut :exec
INSERT INTO tool_clients (server_id, issuer, redirect_url, client) VALUES ($1, $2, $3, $4)
ON CONFLICT (server_id, issuer, redirect_url) DO UPDATE SET client = excluded.client, created_at = clock_timestamp();

-- name: ToolClientForget :exec
DELETE FROM tool_clients WHERE server_id = $1 AND issuer = $2;

-- name: ToolLinkInsert :execrows
-- ToolLinkInsert makes a link.
INSERT INTO tool_links (id, workspace_id, server_id, holder, code_hash, session_id, approval_id, grant_id, scopes, expires_at)
SELECT sqlc.arg(id), s.workspace_id, s.id,
       CASE s.auth_per WHEN 'caller' THEN sqlc.arg(holder)::text ELSE '' END, sqlc.arg(code_hash)::bytea,
       sqlc.narg(session_id)::uuid, sqlc.narg(approval_id)::uuid, sqlc.narg(grant_id)::uuid, sqlc.narg(scopes)::text[], clock_timestamp() + make_interval(secs => sqlc.arg(seconds)::float8)
FROM tool_servers s WHERE s.workspace_id = sqlc.arg(workspace_id) AND s.name = sqlc.arg(server) AND s.auth = 'oauth';

-- name: ToolLinksPurge :exec
-- ToolLinksPurge removes old links.
DELETE FROM tool_links WHERE expires_at < clock_timestamp() - interval '1 day';

-- name: ToolLinkByCode :one
-- ToolLinkByCode is a link, also one that cannot be used any more.
SELECT sqlc.embed(l), s.name AS server, s.url, w.name AS workspace, (l.expires_at <= clock_timestamp())::boolean AS over
FROM tool_links l JOIN tool_servers s ON s.id = l.server_id JOIN workspaces w ON w.id = l.workspace_id
WHERE l.code_hash = sqlc.arg(code_hash)::bytea;

-- name: ToolLinkBegin :execrows
-- ToolLinkBegin stores an authorization request in place of an earlier one.
UPDATE tool_links SET state_hash = sqlc.arg(state_hash)::bytea, flow = sqlc.arg(flow)::sealed
WHERE id = sqlc.arg(id) AND used_at IS NULL AND expires_at > clock_timestamp();

-- name: ToolLinkByState :one
-- ToolLinkByState is the link of an authorization request. An answer may arrive some minutes after
-- the end of the link.
SELECT sqlc.embed(l), s.name AS server, s.url, w.name AS workspace
FROM tool_links l JOIN tool_servers s ON s.id = l.server_id JOIN workspaces w ON w.id = l.workspace_id
WHERE l.state_hash = sqlc.arg(state_hash)::bytea AND l.used_at IS NULL AND l.expires_at > clock_timestamp() - interval '10 minutes';

-- name: ToolLinkTake :execrows
-- ToolLinkTake ends an authorization request: no other answer to it is accepted.
UPDATE tool_links SET state_hash = NULL, flow = NULL WHERE state_hash = sqlc.arg(state_hash)::bytea;

-- name: ToolLinkUsed :execrows
-- ToolLinkUsed ends a link, once.
UPDATE tool_links SET used_at = clock_timestamp(), state_hash = NULL, flow = NULL WHERE id = $1 AND used_at IS NULL;

-- name: ToolWaitsOver :many
-- ToolWaitsOver are the questions for a grant that can be answered: the holder has another grant than
-- the one that was not enough, or the entry was removed with its links.
SELECT a.id, a.session_id FROM approvals a LEFT JOIN tool_links l ON l.approval_id = a.id
WHERE a.status = 'pending' AND a.kind = 'connect' AND a.expires_at > clock_timestamp()
  AND (l.id IS NULL OR EXISTS (SELECT FROM tool_grants g WHERE g.server_id = l.server_id AND g.holder = l.holder AND g.id IS DISTINCT FROM l.grant_id))
ORDER BY a.id LIMIT 100;

-- name: ToolHolder :one
-- ToolHolder is the holder of grants per caller in a turn: the user of its message, else the caller
-- of its session, else the key that sent the message.
SELECT (CASE WHEN t.end_user IS NOT NULL THEN 'user:' || t.end_user
             WHEN s.caller_id IS NOT NULL THEN 'caller:' || s.caller_id
             ELSE 'key:' || coalesce(t.key_id, '') END)::text AS holder
FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = $1;
