-- +goose Up

-- The texts of PDFs count with the files. Texts of servers of an earlier release have no workspace and
-- do not count, neither now nor when they go.
ALTER TABLE file_texts ADD COLUMN workspace_id uuid;

-- storage_count adds the change of a row to the counts of its workspace, and refuses the
-- transaction where that exceeds the quota. It runs at COMMIT: the row of the counts is the last
-- lock that a transaction takes, and the transactions of a workspace wait for each other no
-- longer than a commit takes. It refuses no text of a PDF: a turn would fail with it. The server
-- stores a note in place of a text that would exceed the quota.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION storage_count() RETURNS trigger LANGUAGE plpgsql AS $$
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
        ELSIF TG_TABLE_NAME = 'file_texts' THEN
            delta := delta - octet_length(OLD.text);
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
        ELSIF TG_TABLE_NAME = 'file_texts' THEN
            delta := delta + octet_length(NEW.text);
        ELSE
            delta := delta + octet_length(NEW.content);
        END IF;
    END IF;
    IF delta = 0 THEN
        RETURN NULL;
    END IF;
    INSERT INTO workspace_storage AS s (workspace_id, files, folders, documents)
    SELECT w.id, CASE WHEN TG_TABLE_NAME IN ('files', 'file_texts') THEN delta ELSE 0 END, CASE TG_TABLE_NAME WHEN 'workdirs' THEN delta ELSE 0 END,
           CASE TG_TABLE_NAME WHEN 'documents' THEN delta ELSE 0 END
    FROM workspaces w WHERE w.id = workspace      -- none while the workspace itself is deleted
    ON CONFLICT (workspace_id) DO UPDATE
    SET files = s.files + excluded.files, folders = s.folders + excluded.folders, documents = s.documents + excluded.documents
    RETURNING s.files + s.folders + s.documents INTO used;
    IF delta > 0 AND TG_TABLE_NAME <> 'file_texts' THEN
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

-- This locks out writers until the counts below are complete.
CREATE CONSTRAINT TRIGGER file_texts_storage AFTER INSERT OR UPDATE OF text OR DELETE ON file_texts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION storage_count();

UPDATE file_texts t SET workspace_id = f.workspace_id FROM files f WHERE f.upload_id = t.upload_id;

INSERT INTO workspace_storage AS s (workspace_id, files)
SELECT t.workspace_id, sum(octet_length(t.text)) FROM file_texts t WHERE t.workspace_id IS NOT NULL GROUP BY t.workspace_id
ON CONFLICT (workspace_id) DO UPDATE SET files = s.files + excluded.files;
