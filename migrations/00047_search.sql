-- +goose Up

-- PostgreSQL searches the documents. Each document is split into sections, and a section has its
-- words in the language of its workspace.

-- The text search configuration of a workspace: a name such as german, or simple for no language.
ALTER TABLE workspaces ADD COLUMN search_language text NOT NULL DEFAULT 'english'
    CHECK (search_language IN ('arabic', 'danish', 'dutch', 'english', 'finnish', 'french', 'german', 'hungarian', 'indonesian', 'irish',
        'italian', 'lithuanian', 'nepali', 'norwegian', 'portuguese', 'romanian', 'russian', 'simple', 'spanish', 'swedish', 'tamil', 'turkish'));

-- plain_words replaces ASCII punctuation by blanks, one for one, so that last_event_id, http.Handler
-- and a/b are words and not one token. The text keeps its length.
-- +goose StatementBegin
CREATE FUNCTION plain_words(source text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT translate(source, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))
$$;
-- +goose StatementEnd

-- section_words are the words of a section. A heading counts most, and what the document is about
-- more than the text. A name such as ReadAll is one word, and in these also its parts.
-- +goose StatementBegin
CREATE FUNCTION section_words(language text, heading text, about text, body text) RETURNS tsvector LANGUAGE sql STABLE AS $$
    SELECT setweight(to_tsvector(language::regconfig, plain_words(heading || ' ' || regexp_replace(heading, '([[:lower:]])([[:upper:]])', '\1 \2', 'g'))), 'A')
        || setweight(to_tsvector(language::regconfig, plain_words(about || ' ' || regexp_replace(about, '([[:lower:]])([[:upper:]])', '\1 \2', 'g'))), 'B')
        || to_tsvector(language::regconfig, plain_words(body))
$$;
-- +goose StatementEnd

-- indexed is the version whose sections are stored. A release that does not know sections raises
-- the version alone, and so makes the document stale.
ALTER TABLE documents ADD COLUMN indexed int NOT NULL DEFAULT 0;
CREATE INDEX documents_stale ON documents (workspace_id, path) WHERE indexed <> version;
CREATE INDEX documents_path ON documents (workspace_id, path COLLATE "C");

-- The log of changes has what an administrator or an agent changed, not the index.
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR DELETE OR UPDATE OF title, content, version ON documents
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{content}', '{indexed,updated_at}', '{path}');

CREATE TABLE document_sections (
    workspace_id uuid     NOT NULL,
    path         text     NOT NULL,
    n            int      NOT NULL,       -- from 1, in the order of the document
    line         int      NOT NULL,       -- where the section begins, from 1
    heading      text     NOT NULL,
    body         text     NOT NULL,
    sample       int      NOT NULL,       -- uniform: the sections with the least values are a fair sample
    words        tsvector NOT NULL,
    PRIMARY KEY (workspace_id, path, n),
    FOREIGN KEY (workspace_id, path) REFERENCES documents ON DELETE CASCADE
);
ALTER TABLE document_sections ALTER COLUMN words SET STORAGE MAIN; -- ranking reads it from the row
CREATE INDEX document_sections_sample ON document_sections (workspace_id, sample);
CREATE INDEX document_sections_words ON document_sections USING gin (words) WITH (fastupdate = off);
CREATE INDEX document_sections_headings ON document_sections USING gin (ts_filter(words, '{a}')) WITH (fastupdate = off);

-- A change of the language makes all documents of the workspace stale.
-- +goose StatementBegin
CREATE FUNCTION search_language_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents SET indexed = 0 WHERE workspace_id = NEW.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER search_language_changed AFTER UPDATE OF search_language ON workspaces
    FOR EACH ROW WHEN (OLD.search_language <> NEW.search_language) EXECUTE FUNCTION search_language_changed();

-- The number of the documents of a workspace, beside their bytes.
ALTER TABLE workspace_storage ADD COLUMN document_count bigint NOT NULL DEFAULT 0;
-- +goose StatementBegin
CREATE FUNCTION document_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_storage AS s (workspace_id, document_count)
    SELECT w.id, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END
    FROM workspaces w WHERE w.id = coalesce(NEW.workspace_id, OLD.workspace_id) -- none while the workspace itself is deleted
    ON CONFLICT (workspace_id) DO UPDATE SET document_count = s.document_count + excluded.document_count;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- This locks out writers until the counts below are complete.
CREATE CONSTRAINT TRIGGER document_count AFTER INSERT OR DELETE ON documents
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION document_count();
INSERT INTO workspace_storage AS s (workspace_id, document_count)
SELECT workspace_id, count(*) FROM documents GROUP BY workspace_id
ON CONFLICT (workspace_id) DO UPDATE SET document_count = excluded.document_count;

-- +goose Down

DROP TRIGGER document_count ON documents;
DROP FUNCTION document_count;
ALTER TABLE workspace_storage DROP COLUMN document_count;
DROP TRIGGER search_language_changed ON workspaces;
DROP FUNCTION search_language_changed;
DROP TABLE document_sections;
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR UPDATE OR DELETE ON documents
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{content}', '{updated_at}', '{path}');
DROP INDEX documents_path;
ALTER TABLE documents DROP COLUMN indexed; -- and its index
DROP FUNCTION section_words;
DROP FUNCTION plain_words;
ALTER TABLE workspaces DROP COLUMN search_language;
