-- name: WorkdirTake :one
-- WorkdirTake raises the fence. Where a newer claim has the folder, or the session is
-- erased, it returns no row. The session's row is locked, so that this comes before an
-- erasure, which then takes the folder away, or is in vain.
INSERT INTO workdirs (session_id, workspace_id, epoch)
SELECT s.id, s.workspace_id, sqlc.arg(epoch)::bigint FROM sessions s
WHERE s.workspace_id = sqlc.arg(workspace_id) AND s.id = sqlc.arg(session_id) AND s.erased_at IS NULL
FOR SHARE
ON CONFLICT (session_id) DO UPDATE SET epoch = EXCLUDED.epoch WHERE workdirs.epoch <= EXCLUDED.epoch
RETURNING version;

-- name: WorkdirSave :one
-- WorkdirSave is the fence of a save, and locks the folder.
UPDATE workdirs SET version = version + 1, files = sqlc.arg(files), bytes = sqlc.arg(bytes), updated_at = now()
WHERE workspace_id = sqlc.arg(workspace_id) AND session_id = sqlc.arg(session_id) AND epoch = sqlc.arg(epoch)
RETURNING version;

-- name: WorkdirVersion :one
SELECT version FROM workdirs WHERE workspace_id = $1 AND session_id = $2;

-- name: WorkdirLock :exec
SELECT FROM workdirs WHERE workspace_id = $1 AND session_id = $2 FOR UPDATE;

-- name: WorkdirDrop :exec
-- WorkdirDrop forgets a folder with everything in it.
DELETE FROM workdirs WHERE workspace_id = $1 AND session_id = $2;

-- name: WorkFiles :many
-- WorkFiles is what a folder has, or one path of it, with where its content is.
SELECT f.path, f.kind, f.executable, f.size, f.sha256, f.target, b.id AS blob_id
FROM work_files f LEFT JOIN work_blobs b ON b.workspace_id = f.workspace_id AND b.sha256 = f.sha256
WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.session_id = sqlc.arg(session_id)
  AND (sqlc.narg(path)::bytea IS NULL OR f.path_sha256 = sha256(sqlc.narg(path)::bytea))
ORDER BY f.path;

-- name: WorkFilesDrop :exec
DELETE FROM work_files f
WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.session_id = sqlc.arg(session_id)
  AND f.path_sha256 IN (SELECT sha256(unnest(sqlc.arg(paths)::bytea[])));

-- name: WorkFilesPut :exec
-- WorkFilesPut adds names; an empty hash or target is none.
INSERT INTO work_files (session_id, workspace_id, path, kind, executable, size, sha256, target)
SELECT sqlc.arg(session_id), sqlc.arg(workspace_id), n.path, n.kind, n.executable, n.size, nullif(n.sha256, ''), nullif(n.target, '')
FROM (SELECT unnest(sqlc.arg(paths)::bytea[]) AS path, unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(executables)::boolean[]) AS executable,
             unnest(sqlc.arg(sizes)::bigint[]) AS size, unnest(sqlc.arg(sums)::bytea[]) AS sha256, unnest(sqlc.arg(targets)::bytea[]) AS target) n;

-- name: WorkBlobsTouch :exec
-- WorkBlobsTouch keeps blobs that are about to be named from being removed. What is
-- locked is being named, or removed: the naming finds out.
UPDATE work_blobs SET loose_at = now()
WHERE work_blobs.id IN (
    SELECT b.id FROM work_blobs b
    WHERE b.workspace_id = $1 AND b.sha256 = ANY(sqlc.arg(sums)::bytea[]) AND b.loose_at < now() - interval '5 minutes'
    FOR NO KEY UPDATE SKIP LOCKED
);

-- name: WorkBlobsThere :many
-- WorkBlobsThere lists which blobs need not be sent. It looks for one after the other:
-- PostgreSQL must not think of reading all that a workspace has.
SELECT b.sha256
FROM (SELECT unnest(sqlc.arg(sums)::bytea[]) AS sha256) n
CROSS JOIN LATERAL (SELECT o.sha256 FROM work_blobs o WHERE o.workspace_id = $1 AND o.sha256 = n.sha256 LIMIT 1) b;

-- name: WorkBlobsPut :exec
-- WorkBlobsPut stores blobs of one chunk; a blob that another process has stored meanwhile
-- stays. They come in the order of their hashes, or two such statements could wait
-- for each other.
WITH fresh AS (
    INSERT INTO work_blobs (id, workspace_id, sha256, size)
    SELECT n.id, $1, n.sha256, octet_length(n.data)
    FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(sums)::bytea[]) AS sha256, unnest(sqlc.arg(chunks)::bytea[]) AS data) n
    ON CONFLICT (workspace_id, sha256) DO NOTHING
    RETURNING id
)
INSERT INTO work_chunks (blob_id, n, data)
SELECT n.id, 0, n.data
FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id, unnest(sqlc.arg(chunks)::bytea[]) AS data) n
JOIN fresh ON fresh.id = n.id;

-- name: WorkBlobBegin :exec
-- WorkBlobBegin makes a blob whose hash is not known yet.
INSERT INTO work_blobs (id, workspace_id) VALUES ($1, $2);

-- name: WorkChunkPut :execrows
-- WorkChunkPut adds a chunk to a blob that is still there.
WITH b AS (UPDATE work_blobs SET loose_at = now() WHERE work_blobs.id = $1 RETURNING work_blobs.id)
INSERT INTO work_chunks (blob_id, n, data) SELECT b.id, sqlc.arg(n), sqlc.arg(data) FROM b;

-- name: WorkBlobEnd :execrows
-- WorkBlobEnd stores the final hash and size of a blob.
UPDATE work_blobs SET sha256 = sqlc.arg(sha256), size = sqlc.arg(size), loose_at = now() WHERE id = sqlc.arg(id);

-- name: WorkBlobDrop :exec
DELETE FROM work_blobs WHERE id = $1;

-- name: WorkBlobsLock :many
-- WorkBlobsLock locks blobs that lose or get names, always in the same order, and
-- lists them: what is missing was removed.
SELECT b.sha256 FROM work_blobs b
WHERE b.workspace_id = $1 AND b.sha256 = ANY(sqlc.arg(sums)::bytea[])
ORDER BY b.sha256
FOR NO KEY UPDATE;

-- name: WorkBlobsNamed :exec
UPDATE work_blobs SET loose_at = NULL WHERE workspace_id = $1 AND sha256 = ANY(sqlc.arg(sums)::bytea[]) AND loose_at IS NOT NULL;

-- name: WorkBlobsLoosen :exec
UPDATE work_blobs SET loose_at = now() WHERE workspace_id = $1 AND sha256 = ANY(sqlc.arg(sums)::bytea[]) AND loose_at IS NULL;

-- name: WorkBlobsOfSession :many
-- WorkBlobsOfSession locks what a folder names, so that no other folder can begin to name it.
SELECT b.id FROM work_blobs b
WHERE b.workspace_id = $1 AND b.sha256 IN (SELECT f.sha256 FROM work_files f WHERE f.workspace_id = $1 AND f.session_id = $2)
ORDER BY b.sha256
FOR UPDATE;

-- name: WorkBlobsLoose :many
-- WorkBlobsLoose locks blobs that perhaps nothing names.
SELECT b.id FROM work_blobs b
WHERE b.loose_at < now() - make_interval(secs => sqlc.arg(grace_seconds)::float8)
ORDER BY b.loose_at
LIMIT sqlc.arg(n)
FOR UPDATE SKIP LOCKED;

-- name: WorkBlobsKeep :exec
-- WorkBlobsKeep notes that blobs, which the caller has locked, have names after all.
UPDATE work_blobs b SET loose_at = NULL
WHERE b.id = ANY(sqlc.arg(ids)::uuid[]) AND EXISTS (SELECT FROM work_files f WHERE f.workspace_id = b.workspace_id AND f.sha256 = b.sha256);

-- name: WorkBlobsDrop :execrows
-- WorkBlobsDrop removes those of the blobs, which the caller has locked, that have no
-- name. It must be a statement after the one that locks: it sees what was committed
-- until then.
DELETE FROM work_blobs b
WHERE b.id = ANY(sqlc.arg(ids)::uuid[]) AND NOT EXISTS (SELECT FROM work_files f WHERE f.workspace_id = b.workspace_id AND f.sha256 = b.sha256);

-- name: WorkChunks :many
-- WorkChunks reads on in a blob.
SELECT data FROM work_chunks WHERE blob_id = $1 AND n >= sqlc.arg(first) ORDER BY n LIMIT sqlc.arg(many);

-- name: WorkChunksFirst :many
-- WorkChunksFirst reads blobs of one chunk.
SELECT blob_id, data FROM work_chunks WHERE blob_id = ANY(sqlc.arg(ids)::uuid[]) AND n = 0;
