-- +goose Up

-- The folder of a session's agent, as it was at the last complete save.
CREATE TABLE workdirs (
    session_id   uuid PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    workspace_id uuid NOT NULL,
    epoch        bigint NOT NULL,             -- the fence: who took the folder under an older one saves nothing
    version      bigint NOT NULL DEFAULT 0,   -- how often it was saved
    files        int NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX workdirs_workspace ON workdirs (workspace_id);

-- The content of files, once for each workspace. It is sent before anything names it,
-- each chunk in a transaction of its own, so that a long save holds nothing open.
CREATE TABLE work_blobs (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    sha256       bytea CHECK (octet_length(sha256) = 32), -- null: its chunks are still coming
    size         bigint NOT NULL DEFAULT 0,
    loose_at     timestamptz DEFAULT now(),   -- since when perhaps nothing names it; null: something does
    UNIQUE (workspace_id, sha256)
);
CREATE INDEX work_blobs_loose ON work_blobs (loose_at) WHERE loose_at IS NOT NULL;

CREATE TABLE work_chunks (
    blob_id uuid NOT NULL REFERENCES work_blobs ON DELETE CASCADE,
    n       int NOT NULL,                     -- 0, 1, 2 …; all but the last are equally long
    data    bytea NOT NULL,
    PRIMARY KEY (blob_id, n)
);
-- A part of a row is read faster this way, and compressing is work that a save waits for.
ALTER TABLE work_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- What is in a folder. Names are bytes: a file system knows no encoding. They can be
-- longer than an index takes, which is why it has their hash. The reference keeps a
-- blob from being removed as long as a file has it; it is deferred, so that a workspace
-- can go with all that it has in any order.
CREATE TABLE work_files (
    session_id   uuid NOT NULL REFERENCES workdirs ON DELETE CASCADE,
    path_sha256  bytea NOT NULL GENERATED ALWAYS AS (sha256(path)) STORED,
    path         bytea NOT NULL,              -- "reports/2026.csv", never with a slash at either end
    workspace_id uuid NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('file', 'dir', 'symlink')),
    executable   boolean NOT NULL,
    size         bigint NOT NULL,
    sha256       bytea,
    target       bytea,                       -- of a symlink, as it is
    PRIMARY KEY (session_id, path_sha256),
    FOREIGN KEY (workspace_id, sha256) REFERENCES work_blobs (workspace_id, sha256) DEFERRABLE INITIALLY DEFERRED,
    CHECK ((kind = 'file') = (sha256 IS NOT NULL) AND (kind = 'symlink') = (target IS NOT NULL))
);
CREATE INDEX work_files_blob ON work_files (workspace_id, sha256) WHERE sha256 IS NOT NULL;
