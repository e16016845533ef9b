-- +goose Up

-- Languages without blanks between words, and vectors of passages where pgvector is available.

-- plain_words replaces punctuation by blanks, one for one: ASCII, so that last_event_id, http.Handler
-- and a/b are words and not one token, and that of Chinese, Japanese and Korean, which a database in
-- the locale C takes for letters. The text keeps its length.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION plain_words(source text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT translate(source, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~　、。〈〉《》「」『』【】〔〕・！（），．：；？［］｛｝～', repeat(' ', 61))
$$;
-- +goose StatementEnd

-- run_characters are the characters, for a class of a regular expression, of languages whose words have
-- no blanks between them: Chinese, Japanese and Korean.
CREATE FUNCTION run_characters() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN '\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f';

-- split_runs replaces a run of such characters by its pairs of characters: 東京都 is 東京 京都. For a
-- document (tails) also by its last character, so that each character begins a word and a query of
-- one character is a prefix.
-- +goose StatementBegin
CREATE FUNCTION split_runs(source text, tails boolean) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    run constant text := run_characters();
BEGIN
    IF octet_length(source) = length(source) OR source !~ ('[' || run || ']') THEN
        RETURN source;
    END IF;
    source := regexp_replace(source, '([^\s' || run || '])(?=[' || run || '])', '\1 ', 'g');
    source := regexp_replace(source, '([' || run || '])(?=[^\s' || run || '])', '\1 ', 'g');
    RETURN regexp_replace(source, '(?<=[' || run || '])([' || run || '])' || CASE WHEN tails THEN '' ELSE '(?=[' || run || '])' END, '\1 \1', 'g');
END $$;
-- +goose StatementEnd

-- blank_runs replaces the characters of runs by blanks, one for one.
CREATE FUNCTION blank_runs(source text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN octet_length(source) = length(source) THEN source ELSE regexp_replace(source, '[' || run_characters() || ']', ' ', 'g') END;

-- term_query is the query for a word of a query: a character of a run also matches the pairs that it
-- begins.
CREATE FUNCTION term_query(term text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (quote_literal(term) || CASE WHEN length(term) = 1 AND split_runs('a' || term, false) <> 'a' || term THEN ':*' ELSE '' END)::tsquery;

-- As before, except that runs are split.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION section_words(language text, heading text, about text, body text) RETURNS tsvector LANGUAGE sql STABLE AS $$
    SELECT setweight(to_tsvector(language::regconfig, split_runs(plain_words(heading || ' ' || regexp_replace(heading, '([[:lower:]])([[:upper:]])', '\1 \2', 'g')), true)), 'A')
        || setweight(to_tsvector(language::regconfig, split_runs(plain_words(about || ' ' || regexp_replace(about, '([[:lower:]])([[:upper:]])', '\1 \2', 'g')), true)), 'B')
        || to_tsvector(language::regconfig, split_runs(plain_words(body), true))
$$;
-- +goose StatementEnd

-- embedded is the version whose passages have vectors. Each write makes the document one without them.
ALTER TABLE documents ADD COLUMN embedded int NOT NULL DEFAULT 0;
CREATE INDEX documents_unembedded ON documents (workspace_id, path) WHERE embedded <> version;
CREATE OR REPLACE TRIGGER admin_log AFTER INSERT OR DELETE OR UPDATE OF title, content, version ON documents
    FOR EACH ROW EXECUTE FUNCTION admin_log_write('{content}', '{indexed,embedded,updated_at}', '{path}');

-- The vectors in the database: the model that made them, and the replica that makes more. At most one
-- row. Zero dimensions: there is no table of vectors yet, because no vector has arrived.
CREATE TABLE vector_index (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    model        text        NOT NULL,
    dimensions   int         NOT NULL DEFAULT 0,
    worker       uuid        NOT NULL, -- the process that asks for vectors
    worker_until timestamptz NOT NULL  -- then another one may
);

-- vectors_adopt makes this model the one whose vectors are in the database, and all documents need
-- vectors then.
-- +goose StatementBegin
CREATE FUNCTION vectors_adopt(name text, process uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO vector_index AS v (model, worker, worker_until) VALUES (name, process, now())
    ON CONFLICT (one) DO UPDATE SET model = excluded.model, worker = excluded.worker, worker_until = excluded.worker_until, dimensions = 0
    WHERE v.model <> excluded.model;
    IF FOUND THEN
        UPDATE documents SET embedded = 0 WHERE embedded <> 0;
    END IF;
END $$;
-- +goose StatementEnd

-- section_text is the text of a passage for the model, and its digest the key of its vector: a change
-- of the text needs another vector, a change of the language or of another passage does not.
CREATE FUNCTION section_text(title text, heading text, body text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN title || E'\n' || heading || E'\n' || body;

-- The functions below use a table of vectors that only exists where pgvector does.

-- vector_path is the search path with the schema of pgvector.
CREATE FUNCTION vector_path() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(', ', current_setting('search_path'), (
        SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'))
$$;

-- vectors_available reports whether vectors can be stored: 'yes'; 'absent', if PostgreSQL does not
-- have pgvector 0.8 or later; else the statement that a superuser has to run, which it tries if make.
-- +goose StatementBegin
CREATE FUNCTION vectors_available(make boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    installed int[] := (SELECT string_to_array(substring(extversion FROM '^\d+\.\d+'), '.') FROM pg_extension WHERE extname = 'vector');
    offered int[] := (SELECT string_to_array(substring(default_version FROM '^\d+\.\d+'), '.') FROM pg_available_extensions WHERE name = 'vector');
    statement text := CASE WHEN installed IS NULL THEN 'CREATE EXTENSION vector' ELSE 'ALTER EXTENSION vector UPDATE' END;
BEGIN
    IF installed >= '{0,8}' THEN
        RETURN 'yes';
    ELSIF offered IS NULL OR offered < '{0,8}' THEN
        RETURN 'absent';
    ELSIF NOT make THEN
        RETURN statement;
    END IF;
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN -- services that host PostgreSQL have their own errors
        RETURN statement;
    END;
    RETURN 'yes';
END $$;
-- +goose StatementEnd

-- vectors_reset makes an empty table of vectors with this many dimensions; all documents need vectors
-- then. It does nothing for a process that has lost its turn. An index of pgvector has at most 4,000
-- dimensions; without it a search compares all vectors. The roles that write sections write vectors.
-- +goose StatementBegin
CREATE FUNCTION vectors_reset(size int, name text, process uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    role oid;
BEGIN
    PERFORM FROM vector_index v WHERE v.model = name AND v.worker = process FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('search_path', vector_path(), true);
    DROP TABLE IF EXISTS section_vectors;
    EXECUTE format('CREATE TABLE section_vectors (
        workspace_id uuid NOT NULL, path text NOT NULL, digest uuid NOT NULL, embedding halfvec(%s) NOT NULL,
        PRIMARY KEY (workspace_id, path, digest),
        FOREIGN KEY (workspace_id, path) REFERENCES documents ON DELETE CASCADE)', size);
    IF size <= 4000 THEN
        CREATE INDEX section_vectors_near ON section_vectors USING hnsw (embedding halfvec_cosine_ops);
    END IF;
    FOR role IN SELECT DISTINCT a.grantee FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
                WHERE c.oid = 'document_sections'::regclass AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner) LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON section_vectors TO %s', role::regrole);
    END LOOP;
    UPDATE documents SET embedded = 0 WHERE embedded <> 0;
    UPDATE vector_index SET dimensions = size;
END $$;
-- +goose StatementEnd

-- vectors_lacking are the passages of a document without a vector. It removes the vectors of passages
-- that the document no longer has.
-- +goose StatementBegin
CREATE FUNCTION vectors_lacking(space uuid, doc text) RETURNS TABLE (digest uuid, passage text) LANGUAGE plpgsql AS $$
DECLARE
    stored uuid[] := '{}';
BEGIN
    IF (SELECT v.dimensions > 0 FROM vector_index v) THEN -- else those of another model may be there
        DELETE FROM section_vectors v WHERE v.workspace_id = space AND v.path = doc AND v.digest NOT IN (
            SELECT md5(section_text(d.title, s.heading, s.body))::uuid FROM documents d JOIN document_sections s USING (workspace_id, path)
            WHERE d.workspace_id = space AND d.path = doc);
        SELECT coalesce(array_agg(v.digest), '{}') INTO stored FROM section_vectors v WHERE v.workspace_id = space AND v.path = doc;
    END IF;
    RETURN QUERY SELECT t.key, min(t.passage) FROM (
        SELECT md5(section_text(d.title, s.heading, s.body))::uuid AS key, section_text(d.title, s.heading, s.body) AS passage
        FROM documents d JOIN document_sections s USING (workspace_id, path) WHERE d.workspace_id = space AND d.path = doc) t
    WHERE t.key <> ALL (stored) AND t.passage ~ '\S' GROUP BY t.key ORDER BY t.key;
END $$;
-- +goose StatementEnd

-- vectors_store stores vectors of a document, unless it was deleted meanwhile. It returns false for a
-- process that has lost its turn.
-- +goose StatementBegin
CREATE FUNCTION vectors_store(name text, process uuid, space uuid, doc text, digests uuid[], embeddings text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM vector_index v WHERE v.model = name AND v.worker = process FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM set_config('search_path', vector_path(), true);
    PERFORM FROM documents d WHERE d.workspace_id = space AND d.path = doc FOR KEY SHARE;
    IF FOUND THEN
        INSERT INTO section_vectors (workspace_id, path, digest, embedding)
        SELECT space, doc, n.digest, n.embedding::halfvec FROM unnest(digests, embeddings) AS n (digest, embedding)
        ON CONFLICT (workspace_id, path, digest) DO UPDATE SET embedding = excluded.embedding;
    END IF;
    RETURN true;
END $$;
-- +goose StatementEnd

-- sections_near are the sections nearest to a vector, nearest first. The text of the statement is
-- dynamic so that each workspace gets its own plan: a small one is compared whole.
-- +goose StatementBegin
CREATE FUNCTION sections_near(space uuid, prefix text, vector text, phrases text, excluded text, most int)
RETURNS TABLE (path text, n int, similarity float8) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('search_path', vector_path(), true), set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '100', true);
    RETURN QUERY EXECUTE $q$
        WITH near AS MATERIALIZED (
            SELECT v.path, v.digest, v.embedding <=> $3::halfvec AS distance FROM section_vectors v
            WHERE v.workspace_id = $1 AND starts_with(v.path, $2) ORDER BY v.embedding <=> $3::halfvec LIMIT $6
        ), operators AS MATERIALIZED (
            SELECT websearch_to_tsquery(w.search_language::regconfig, $4) AS phrases, websearch_to_tsquery(w.search_language::regconfig, $5) AS excluded
            FROM workspaces w WHERE w.id = $1
        )
        SELECT s.path, min(s.n), (1 - near.distance)::float8 FROM near
        JOIN documents d ON d.workspace_id = $1 AND d.path = near.path
        JOIN document_sections s ON s.workspace_id = $1 AND s.path = near.path AND md5(section_text(d.title, s.heading, s.body))::uuid = near.digest
        CROSS JOIN operators o
        WHERE (numnode(o.phrases) = 0 OR s.words @@ o.phrases)
          AND (numnode(o.excluded) = 0 OR NOT EXISTS (
              SELECT FROM document_sections x WHERE x.workspace_id = $1 AND x.path = s.path AND x.words @@ o.excluded))
        GROUP BY s.path, near.digest, near.distance ORDER BY near.distance, s.path COLLATE "C"
    $q$ USING space, prefix, vector, phrases, excluded, most;
END $$;
-- +goose StatementEnd

-- Only the owner of the tables can make one, whatever the role of the service.
-- +goose StatementBegin
DO $do$
DECLARE
    f regprocedure;
BEGIN
    FOREACH f IN ARRAY ARRAY['vectors_available(boolean)', 'vectors_reset(int, text, uuid)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $do$;
-- +goose StatementEnd
