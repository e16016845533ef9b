-- name: DocumentPut :one
INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, path) DO UPDATE
SET title = excluded.title, content = excluded.content, version = documents.version + 1, updated_at = now()
RETURNING path, title, version, created_at, updated_at;

-- name: DocumentCreate :one
-- DocumentCreate writes a document where there is none; else it returns no row.
INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, path) DO NOTHING
RETURNING version;

-- name: DocumentReplace :one
-- DocumentReplace writes over the version that the writer has read, and no other.
UPDATE documents SET title = $3, content = $4, version = version + 1, updated_at = now()
WHERE workspace_id = $1 AND path = $2 AND version = sqlc.arg(expected)
RETURNING version;

-- name: DocumentsOthers :one
-- DocumentsOthers measures what a workspace has besides one document.
SELECT count(*)::bigint AS documents, coalesce(sum(octet_length(content)), 0)::bigint AS bytes
FROM documents WHERE workspace_id = $1 AND path <> $2;

-- name: DocumentGet :one
SELECT * FROM documents WHERE workspace_id = $1 AND path = $2;

-- name: DocumentsList :many
SELECT path, title, octet_length(content)::int AS size, version, updated_at FROM documents
WHERE workspace_id = $1 AND starts_with(path, sqlc.arg(prefix)::text)
ORDER BY path;

-- name: DocumentsAll :many
-- DocumentsAll is a workspace's whole knowledge, for searching.
SELECT path, title, content, version FROM documents WHERE workspace_id = $1 ORDER BY path;

-- name: DocumentDelete :execrows
-- DocumentDelete removes a document, unless it is at another version than expected; null: at any.
DELETE FROM documents WHERE workspace_id = $1 AND path = $2 AND version = coalesce(sqlc.narg(expected)::int, version);

-- name: DocumentsVersion :one
-- DocumentsVersion changes whenever a workspace's knowledge does.
SELECT count(*)::bigint AS documents, coalesce(sum(version), 0)::bigint AS versions, coalesce(max(updated_at), 'epoch')::timestamptz AS newest
FROM documents WHERE workspace_id = $1;
