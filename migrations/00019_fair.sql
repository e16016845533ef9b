-- +goose Up

-- A workspace may run 64 turns at once unless an administrator says otherwise. Workspaces that
-- exist keep their value, because a default cannot be distinguished from a decision.
ALTER TABLE workspaces ALTER COLUMN max_running SET DEFAULT 64;

-- The storage quota of a workspace in bytes, for files, folders and documents together; 0 is no
-- quota.
ALTER TABLE workspaces ADD COLUMN storage_quota bigint NOT NULL DEFAULT 10737418240 CHECK (storage_quota >= 0);

-- The bytes that a workspace has stored. Triggers keep the counts, so that they hold whatever
-- process or cascade changes a row.
CREATE TABLE workspace_storage (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
    files        bigint NOT NULL DEFAULT 0,
    folders      bigint NOT NULL DEFAULT 0,
    documents    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);                         -- every count is a HOT update

-- storage_count adds the change of a row to the counts of its workspace, and refuses the
-- transaction where that exceeds the quota. It runs at COMMIT: the row of the counts is the last
-- lock that a transaction takes, and the transactions of a workspace wait for each other no
-- longer than a commit takes.
-- +goose StatementBegin
CREATE FUNCTION storage_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    workspace uuid;
    delta     bigint := 0;
    used      bigint;
    quota     bigint;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        workspace := OLD.workspace_id;
        IF TG_TABLE_NAME = 'files' THEN
            delta := delta - CASE WHEN OLD.state = 'ready' THEN coalesce(OLD.size, 0) ELSE 0 END;
        ELSIF TG_TABLE_NAME = 'workdirs' THEN
            delta := delta - OLD.bytes;
        ELSE
            delta := delta - octet_length(OLD.content);
        END IF;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        workspace := NEW.workspace_id;
        IF TG_TABLE_NAME = 'files' THEN
            delta := delta + CASE WHEN NEW.state = 'ready' THEN coalesce(NEW.size, 0) ELSE 0 END;
        ELSIF TG_TABLE_NAME = 'workdirs' THEN
            delta := delta + NEW.bytes;
        ELSE
            delta := delta + octet_length(NEW.content);
        END IF;
    END IF;
    IF delta = 0 THEN
        RETURN NULL;
    END IF;
    INSERT INTO workspace_storage AS s (workspace_id, files, folders, documents)
    SELECT w.id, CASE TG_TABLE_NAME WHEN 'files' THEN delta ELSE 0 END, CASE TG_TABLE_NAME WHEN 'workdirs' THEN delta ELSE 0 END,
           CASE TG_TABLE_NAME WHEN 'documents' THEN delta ELSE 0 END
    FROM workspaces w WHERE w.id = workspace      -- none while the workspace itself is deleted
    ON CONFLICT (workspace_id) DO UPDATE
    SET files = s.files + excluded.files, folders = s.folders + excluded.folders, documents = s.documents + excluded.documents
    RETURNING s.files + s.folders + s.documents INTO used;
    IF delta > 0 THEN
        SELECT w.storage_quota INTO quota FROM workspaces w WHERE w.id = workspace;
        IF quota > 0 AND used > quota THEN
            RAISE EXCEPTION 'With this the workspace has % bytes in files, folders and documents. Its storage quota is % bytes.', used, quota
                USING ERRCODE = 'PQ001';
        END IF;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- These lock out writers until the counts below are complete.
CREATE CONSTRAINT TRIGGER files_storage AFTER INSERT OR UPDATE OF state, size OR DELETE ON files
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION storage_count();
CREATE CONSTRAINT TRIGGER workdirs_storage AFTER INSERT OR UPDATE OF bytes OR DELETE ON workdirs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION storage_count();
CREATE CONSTRAINT TRIGGER documents_storage AFTER INSERT OR UPDATE OF content OR DELETE ON documents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION storage_count();

INSERT INTO workspace_storage (workspace_id, files, folders, documents)
SELECT w.id,
       (SELECT coalesce(sum(f.size), 0) FROM files f WHERE f.workspace_id = w.id AND f.state = 'ready'),
       (SELECT coalesce(sum(d.bytes), 0) FROM workdirs d WHERE d.workspace_id = w.id),
       (SELECT coalesce(sum(octet_length(d.content)), 0) FROM documents d WHERE d.workspace_id = w.id)
FROM workspaces w;

-- Addresses of callbacks can hold credentials. address is the sealed one, and url is empty beside
-- it. A process of the release before finds no address, counts a failed attempt, and a process of
-- this release makes the next one. Rows of that release are sealed by processes of this one.
ALTER TABLE callbacks ADD COLUMN address sealed;
CREATE INDEX callbacks_plain ON callbacks (id) WHERE url <> '';

-- Refused requests to one place within a minute are one row.
ALTER TABLE egress_requests ADD COLUMN times int NOT NULL DEFAULT 1;
