-- name: FileInsert :one
-- FileInsert makes a ticket; where the same key has made one already it returns no row.
INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, key_id, origin, fetch_after,
                   idempotency_key, request_hash, upload_until)
VALUES (sqlc.arg(id), sqlc.arg(workspace_id), 'in', sqlc.arg(state), sqlc.arg(filename), sqlc.arg(mime), sqlc.narg(size), sqlc.narg(sha256),
        sqlc.arg(unrestricted), sqlc.narg(key_id), sqlc.narg(origin), now(), sqlc.narg(idempotency_key), sqlc.narg(request_hash),
        now() + make_interval(secs => sqlc.arg(upload_seconds)::float8))
ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING *;

-- name: FileForget :exec
-- FileForget frees an Idempotency-Key after a day.
UPDATE files SET idempotency_key = NULL
WHERE workspace_id = $1 AND idempotency_key = sqlc.arg(idempotency_key)::text AND created_at < now() - interval '24 hours';

-- name: FileOnce :one
-- FileOnce is the ticket that an Idempotency-Key has made.
SELECT * FROM files WHERE workspace_id = $1 AND idempotency_key = sqlc.arg(idempotency_key)::text;

-- name: FilesFetching :one
-- FilesFetching is how many files of a workspace are to be fetched.
SELECT count(*) FROM files WHERE workspace_id = $1 AND state = 'fetching';

-- name: FileClock :one
-- FileClock is the time that decides what has expired.
SELECT now()::timestamptz AS now;

-- name: FileGet :one
SELECT f.* FROM files f WHERE f.workspace_id = $1 AND f.id = $2 AND f.state <> 'deleted';

-- name: FilesPage :many
-- FilesPage is one page of a workspace's files, newest first: keyset on id, which is
-- a UUID of version 7. The direction is a range and part of the order, because only the index of
-- directions has that order. By the primary key, all files of a workspace would be read where those of
-- one direction are few or old.
SELECT f.* FROM files f
WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.state <> 'deleted' AND f.id < sqlc.arg(before)
  AND (sqlc.narg(direction)::text IS NULL OR f.direction BETWEEN sqlc.narg(direction)::text AND sqlc.narg(direction)::text)
ORDER BY CASE WHEN sqlc.narg(direction)::text IS NOT NULL THEN f.direction END DESC, f.id DESC
LIMIT sqlc.arg(n);

-- name: FilesProduced :many
-- FilesProduced lists what a session, or one turn of it, has produced, newest first.
SELECT f.* FROM files f
WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.session_id = sqlc.arg(session_id)::uuid AND f.direction = 'out' AND f.state = 'ready'
  AND (sqlc.narg(turn_id)::uuid IS NULL OR f.turn_id = sqlc.narg(turn_id)::uuid)
  AND (sqlc.narg(filename)::text IS NULL OR f.filename = sqlc.narg(filename)::text)
ORDER BY f.id DESC
LIMIT sqlc.arg(n);

-- name: FilesOfTurn :many
-- FilesOfTurn lists what a turn has produced, in the order of its calls.
SELECT * FROM files WHERE turn_id = sqlc.arg(turn_id)::uuid AND state = 'ready' ORDER BY id;

-- name: FilesIn :many
-- FilesIn lists the files that came in with messages, in their order.
SELECT t.turn_id AS turn, sqlc.embed(f)
FROM turn_files t JOIN files f ON f.id = t.file_id
WHERE t.workspace_id = sqlc.arg(workspace_id) AND t.turn_id = ANY(sqlc.arg(turns)::uuid[]) AND f.state = 'ready'
ORDER BY t.turn_id, t.n;

-- name: FilesOut :many
-- FilesOut is FilesOfTurn for many turns.
SELECT f.* FROM files f
WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.turn_id = ANY(sqlc.arg(turns)::uuid[]) AND f.state = 'ready'
ORDER BY f.id;

-- name: FileByCall :one
-- FileByCall is what a tool call has produced.
SELECT f.* FROM files f
WHERE f.workspace_id = $1 AND f.turn_id = sqlc.arg(turn_id)::uuid AND f.call_id = sqlc.arg(call_id)::text;

-- name: FileProduce :one
-- FileProduce makes a file of an upload; where the call has made one already, or the
-- session was erased, it returns no row. A tool may still run when that happens: the
-- session's row is locked, so that this comes before it or is in vain.
INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, sha256, unrestricted, upload_id, session_id, turn_id, call_id, ready_at)
SELECT sqlc.arg(id)::uuid, s.workspace_id, 'out', 'ready', sqlc.arg(filename)::text, sqlc.arg(mime)::text, sqlc.arg(size)::bigint, sqlc.arg(sha256)::bytea, true,
       sqlc.arg(upload_id)::uuid, s.id, sqlc.arg(turn_id)::uuid, sqlc.arg(call_id)::text, now()
FROM sessions s WHERE s.workspace_id = sqlc.arg(workspace_id) AND s.id = sqlc.arg(session_id) AND s.erased_at IS NULL
FOR SHARE
ON CONFLICT (turn_id, call_id) WHERE turn_id IS NOT NULL DO NOTHING
RETURNING *;

-- name: FilesCount :one
-- FilesCount is how many files a turn has produced.
SELECT count(*) FROM files WHERE turn_id = sqlc.arg(turn_id)::uuid;

-- name: UploadBegin :exec
INSERT INTO file_uploads (id) VALUES ($1);

-- name: ChunkPut :execrows
-- ChunkPut adds a chunk to an upload that is still there.
WITH u AS (UPDATE file_uploads SET touched_at = now() WHERE file_uploads.id = $1 RETURNING file_uploads.id)
INSERT INTO file_chunks (upload_id, n, data) SELECT u.id, sqlc.arg(n), sqlc.arg(data) FROM u;

-- name: ChunkGet :one
SELECT data FROM file_chunks WHERE upload_id = $1 AND n = $2;

-- name: UploadDrop :exec
-- UploadDrop removes an attempt and its chunks.
DELETE FROM file_uploads WHERE id = $1;

-- name: UploadsAbandoned :exec
-- UploadsAbandoned removes the attempts whose process died.
DELETE FROM file_uploads u
WHERE u.touched_at < now() - interval '30 minutes' AND NOT EXISTS (SELECT FROM files f WHERE f.upload_id = u.id);

-- name: FileReady :execrows
-- FileReady makes an upload the content of a file. Of several that come at once,
-- one does.
UPDATE files
SET state = 'ready', upload_id = sqlc.arg(upload_id)::uuid, mime = sqlc.arg(mime), size = sqlc.arg(size)::bigint, sha256 = sqlc.arg(sha256)::bytea,
    origin = NULL, fetch_after = NULL, ready_at = now()
WHERE workspace_id = sqlc.arg(workspace_id) AND id = sqlc.arg(id) AND state IN ('pending', 'fetching');

-- name: FileReject :execrows
UPDATE files
SET state = 'rejected', code = sqlc.arg(code)::text, reason = sqlc.arg(reason)::text, origin = NULL, fetch_after = NULL
WHERE workspace_id = sqlc.arg(workspace_id) AND id = sqlc.arg(id) AND state IN ('pending', 'fetching');

-- name: FetchesDue :many
-- FetchesDue lists the workspaces that have files to fetch now, the longest wait first.
SELECT workspace_id FROM files WHERE state = 'fetching' AND fetch_after <= now() GROUP BY workspace_id ORDER BY min(fetch_after);

-- name: FetchClaim :one
-- FetchClaim leases the file of a workspace that has waited longest to be fetched.
UPDATE files SET tries = tries + 1, fetch_after = now() + make_interval(secs => sqlc.arg(lease_seconds)::float8)
WHERE files.id = (
    SELECT f.id FROM files f WHERE f.workspace_id = sqlc.arg(workspace_id) AND f.state = 'fetching' AND f.fetch_after <= now() ORDER BY f.fetch_after LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING *;

-- name: FetchLater :exec
-- FetchLater gives a file back, to be tried again after a pause.
UPDATE files SET fetch_after = now() + make_interval(secs => sqlc.arg(pause_seconds)::float8)
WHERE id = sqlc.arg(id) AND tries = sqlc.arg(tries) AND state = 'fetching';

-- name: FilesAttachable :many
-- FilesAttachable finds the files of a message and keeps them from being deleted
-- before it is stored.
SELECT f.* FROM files f
WHERE f.workspace_id = $1 AND f.id = ANY(sqlc.arg(ids)::uuid[]) AND f.state <> 'deleted'
FOR SHARE;

-- name: TurnFilePut :exec
INSERT INTO turn_files (turn_id, file_id, workspace_id, n) VALUES ($1, $2, $3, $4);

-- name: TurnFiles :many
-- TurnFiles lists the files that came with a turn's message.
SELECT f.* FROM turn_files t JOIN files f ON f.id = t.file_id
WHERE t.turn_id = $1 AND f.state = 'ready'
ORDER BY t.n;

-- name: FileUpload :one
-- FileUpload locks a file that shall be deleted.
SELECT upload_id FROM files WHERE workspace_id = $1 AND id = $2 AND state <> 'deleted' FOR UPDATE;

-- name: FileDelete :exec
-- FileDelete leaves what an auditor needs and nothing that was inside.
UPDATE files
SET state = 'deleted', upload_id = NULL, origin = NULL, fetch_after = NULL, deleted_at = now()
WHERE workspace_id = $1 AND id = $2;

-- name: FilesOfSession :many
-- FilesOfSession locks the files that belong to one session alone: what it produced,
-- and what came in with its messages and with no other's.
SELECT f.id, f.upload_id FROM files f
WHERE f.workspace_id = sqlc.arg(workspace_id)
  AND (f.session_id = sqlc.arg(session_id)::uuid
    OR f.id IN (SELECT tf.file_id FROM turn_files tf JOIN turns t ON t.id = tf.turn_id WHERE t.session_id = sqlc.arg(session_id)::uuid))
  AND NOT EXISTS (SELECT FROM turn_files o JOIN turns t ON t.id = o.turn_id WHERE o.file_id = f.id AND t.session_id <> sqlc.arg(session_id)::uuid)
ORDER BY f.id
FOR UPDATE;

-- name: FilesErase :exec
-- FilesErase removes files, and that they came with messages.
DELETE FROM files WHERE workspace_id = $1 AND id = ANY(sqlc.arg(ids)::uuid[]);

-- name: TurnFilesErase :exec
-- TurnFilesErase forgets which files came with a session's messages.
DELETE FROM turn_files f USING turns t WHERE f.workspace_id = $1 AND t.session_id = $2 AND f.turn_id = t.id;

-- name: UploadsDrop :exec
DELETE FROM file_uploads WHERE id = ANY(sqlc.arg(ids)::uuid[]);

-- name: FilesDeleteAll :many
-- FilesDeleteAll removes the files of a workspace, and returns where their bytes are.
DELETE FROM files WHERE workspace_id = $1 RETURNING upload_id;

-- name: FilesPurge :exec
-- FilesPurge forgets the tickets that came to nothing: unused after a day, rejected
-- after a week.
DELETE FROM files
WHERE state = 'pending' AND created_at < now() - interval '1 day' OR state = 'rejected' AND created_at < now() - interval '7 days';

-- name: FilesReceived :many
-- FilesReceived lists the files that came with the messages of a session, up to that
-- of a turn, in their order.
SELECT t.turn_id AS turn, sqlc.embed(f)
FROM turns u JOIN turn_files t ON t.turn_id = u.id JOIN files f ON f.id = t.file_id
WHERE u.workspace_id = sqlc.arg(workspace_id) AND u.session_id = sqlc.arg(session_id) AND f.state = 'ready'
  AND u.created_at <= (SELECT last.created_at FROM turns last WHERE last.id = sqlc.arg(turn_id))
ORDER BY u.created_at, u.id, t.n;

-- name: FileTextGet :one
-- FileTextGet is the text that was extracted from an upload.
SELECT text FROM file_texts WHERE upload_id = $1;

-- name: FileTextPut :exec
-- FileTextPut stores the text of an upload that is still there. Of several, the first one stays.
INSERT INTO file_texts (upload_id, workspace_id, text)
SELECT u.id, sqlc.arg(workspace_id)::uuid, sqlc.arg(text)::text FROM file_uploads u WHERE u.id = sqlc.arg(upload_id) FOR SHARE
ON CONFLICT (upload_id) DO NOTHING;
