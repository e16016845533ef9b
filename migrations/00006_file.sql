-- +goose Up

-- One attempt to bring the bytes of a file in. Its chunks are written one by one,
-- each in a transaction of its own, so that a slow sender holds nothing open. They
-- are part of a file only once files.upload_id says so; what is never said goes.
CREATE TABLE file_uploads (
    id         uuid PRIMARY KEY,
    touched_at timestamptz NOT NULL DEFAULT now() -- when its newest chunk came
) WITH (fillfactor = 70);

CREATE TABLE file_chunks (
    upload_id uuid NOT NULL REFERENCES file_uploads ON DELETE CASCADE,
    n         int NOT NULL,                       -- 0, 1, 2 …; all but the last are equally long
    data      bytea NOT NULL,
    PRIMARY KEY (upload_id, n)
);
-- Most formats are compressed already, and a part of a row is read faster this way.
ALTER TABLE file_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- A file that a caller sends in, or that a turn produced. What was declared in the
-- ticket is replaced by what was received when the file becomes ready.
CREATE TABLE files (
    id              uuid PRIMARY KEY,
    workspace_id    uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    direction       text NOT NULL CHECK (direction IN ('in', 'out')),
    state           text NOT NULL CHECK (state IN ('pending', 'fetching', 'ready', 'rejected', 'deleted')),
    filename        text NOT NULL,                -- to be shown; nothing is ever stored under it
    mime            text NOT NULL,
    size            bigint,                       -- null: not declared
    sha256          bytea,                        -- null: not declared
    unrestricted    boolean NOT NULL,             -- any type that is not denied; else only those that are allowed
    upload_id       uuid UNIQUE REFERENCES file_uploads,
    code            text,                         -- why it was rejected
    reason          text,
    key_id          text,                         -- the API key that asked for the ticket
    upload_until    timestamptz,                  -- until when the bytes may be sent
    origin          sealed,                       -- where to fetch it: such an address is often a secret, and forgotten afterwards
    tries           int NOT NULL DEFAULT 0,
    fetch_after     timestamptz,                  -- the lease of whoever fetches, or the pause before the next try
    session_id      uuid,                         -- what produced it
    turn_id         uuid,
    call_id         text,                         -- the tool call: calling again finds the same file
    idempotency_key text,
    request_hash    bytea,
    created_at      timestamptz NOT NULL DEFAULT now(),
    ready_at        timestamptz,
    deleted_at      timestamptz
);
CREATE UNIQUE INDEX files_once ON files (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX files_call ON files (turn_id, call_id) WHERE turn_id IS NOT NULL;
CREATE INDEX files_list ON files (workspace_id, id) WHERE state <> 'deleted';
CREATE INDEX files_session ON files (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX files_unfinished ON files (state, fetch_after) WHERE state IN ('pending', 'fetching', 'rejected');

-- The files that came with a message, in its order.
CREATE TABLE turn_files (
    turn_id      uuid NOT NULL,
    file_id      uuid NOT NULL REFERENCES files ON DELETE CASCADE,
    workspace_id uuid NOT NULL,
    n            int NOT NULL,
    PRIMARY KEY (turn_id, file_id)
);
CREATE INDEX turn_files_file ON turn_files (file_id);
