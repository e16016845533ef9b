-- name: DocumentPut :one
-- DocumentPut writes a document. Its sections are stored in the same transaction.
INSERT INTO documents (workspace_id, path, title, content, indexed) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (workspace_id, path) DO UPDATE
SET title = excluded.title, content = excluded.content, version = documents.version + 1, indexed = documents.version + 1, updated_at = now()
RETURNING path, title, version, created_at, updated_at;

-- name: DocumentCreate :one
-- DocumentCreate writes a document where there is none; else it returns no row.
INSERT INTO documents (workspace_id, path, title, content, indexed) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (workspace_id, path) DO NOTHING
RETURNING version;

-- name: DocumentReplace :one
-- DocumentReplace writes over the version that the writer has read, and no other.
UPDATE documents SET title = $3, content = $4, version = version + 1, indexed = version + 1, updated_at = now()
WHERE workspace_id = $1 AND path = $2 AND version = sqlc.arg(expected)
RETURNING version;

-- name: DocumentsMeasure :one
-- DocumentsMeasure is what a workspace has stored, and the size of one document; -1: it does not
-- exist.
SELECT coalesce(s.document_count, 0)::bigint AS documents, coalesce(s.documents, 0)::bigint AS bytes,
       coalesce((SELECT octet_length(d.content) FROM documents d WHERE d.workspace_id = sqlc.arg(workspace_id) AND d.path = sqlc.arg(path)), -1)::bigint AS size
FROM (VALUES (true)) AS one LEFT JOIN workspace_storage s ON s.workspace_id = sqlc.arg(workspace_id);

-- name: DocumentGet :one
SELECT path, title, content, version, created_at, updated_at FROM documents WHERE workspace_id = $1 AND path = $2;

-- name: DocumentsList :many
-- DocumentsList is a page of the documents below a path, without their contents.
SELECT path, title, octet_length(content)::int AS size, encode(sha256(convert_to(content, 'UTF8')), 'hex')::text AS sha256, version, updated_at FROM documents
WHERE workspace_id = $1 AND starts_with(path, sqlc.arg(prefix)::text) AND path COLLATE "C" > sqlc.arg(after)::text
ORDER BY path COLLATE "C" LIMIT sqlc.narg(most)::int;

-- name: DocumentsNear :many
-- DocumentsNear are paths that may be meant by an unknown one: those around it in the order of paths,
-- and those that contain the name or are part of it, whatever the case of ASCII letters and the blanks.
-- most bounds each of the three parts. The third one reads all paths, 0.3 s for 100,000.
(SELECT b.path FROM documents b
 WHERE b.workspace_id = sqlc.arg(workspace_id) AND starts_with(b.path, sqlc.arg(prefix)::text)
   AND b.path COLLATE "C" < sqlc.arg(path)::text AND b.path COLLATE "C" >= sqlc.arg(prefix)::text
 ORDER BY b.path COLLATE "C" DESC LIMIT sqlc.arg(most)::int)
UNION
(SELECT a.path FROM documents a
 WHERE a.workspace_id = sqlc.arg(workspace_id) AND starts_with(a.path, sqlc.arg(prefix)::text) AND a.path COLLATE "C" >= sqlc.arg(path)::text
 ORDER BY a.path COLLATE "C" LIMIT sqlc.arg(most)::int)
UNION
(SELECT found.path FROM (
    SELECT d.path, translate(lower(d.path COLLATE "C"), '-_/', '   ') AS name, translate(lower(sqlc.arg(name)::text COLLATE "C"), '-_/', '   ') AS unknown
    FROM documents d WHERE d.workspace_id = sqlc.arg(workspace_id) AND starts_with(d.path, sqlc.arg(prefix)::text)) found
 WHERE strpos(found.name, found.unknown) > 0 OR strpos(found.unknown, found.name) > 0
 LIMIT sqlc.arg(most)::int);

-- name: DocumentsFolder :many
-- DocumentsFolder is a page of a folder: the folders in it, each with what is below it, and then its
-- documents. The last two columns are about the whole folder.
WITH below AS (
    SELECT d.path, substr(d.path, length(sqlc.arg(folder)::text) + 1) AS rest, d.title, octet_length(d.content) AS size, d.version, d.updated_at
    FROM documents d WHERE d.workspace_id = $1 AND starts_with(d.path, sqlc.arg(folder)::text)
), listed AS (
    SELECT split_part(rest, '/', 1) AS name, strpos(rest, '/') = 0 AS document, max(title) AS title, count(*) AS documents, sum(size) AS size,
           max(version) AS version, max(updated_at) AS updated_at, sum(count(*)) OVER () AS all_documents, sum(sum(size)) OVER () AS all_size
    FROM below GROUP BY 1, 2
)
SELECT name::text AS name, document::bool AS document, title::text AS title, documents, size::bigint AS size, version::int AS version,
       updated_at::timestamptz AS updated_at, all_documents::bigint AS all_documents, all_size::bigint AS all_size
FROM listed
WHERE (document, name COLLATE "C") > (sqlc.arg(after_document)::bool, sqlc.arg(after)::text)
ORDER BY document, name COLLATE "C" LIMIT sqlc.arg(most)::int;

-- name: DocumentsPage :many
-- DocumentsPage is a page of the documents below a path, for grep.
SELECT path, content FROM documents
WHERE workspace_id = $1 AND starts_with(path, sqlc.arg(prefix)::text) AND path COLLATE "C" > sqlc.arg(after)::text
ORDER BY path COLLATE "C" LIMIT sqlc.arg(most)::int;

-- name: DocumentDelete :execrows
-- DocumentDelete removes a document, unless it is at another version than expected; null: at any.
DELETE FROM documents WHERE workspace_id = $1 AND path = $2 AND version = coalesce(sqlc.narg(expected)::int, version);

-- name: DocumentsStale :many
-- DocumentsStale are documents without sections of their version, and locks them. Another replica
-- skips them.
SELECT workspace_id, path, title, content FROM documents
WHERE indexed <> version AND (sqlc.narg(workspace_id)::uuid IS NULL OR workspace_id = sqlc.narg(workspace_id))
ORDER BY workspace_id, path LIMIT sqlc.arg(most)::int FOR UPDATE SKIP LOCKED;

-- name: DocumentsAreStale :one
-- DocumentsAreStale reports whether documents lack the sections of their version. It counts, since
-- PostgreSQL would look for the first one without the index, among all documents.
SELECT (count(*) > 0)::bool FROM documents WHERE indexed <> version AND (sqlc.narg(workspace_id)::uuid IS NULL OR workspace_id = sqlc.narg(workspace_id));

-- name: DocumentIndexed :exec
-- DocumentIndexed records that the sections of a document are stored.
UPDATE documents SET indexed = version WHERE workspace_id = $1 AND path = $2;

-- name: SectionsDelete :exec
DELETE FROM document_sections WHERE workspace_id = $1 AND path = $2;

-- name: SectionsInsert :exec
-- SectionsInsert stores the sections of a document in the language of its workspace.
INSERT INTO document_sections (workspace_id, path, n, line, heading, body, sample, words)
SELECT w.id, sqlc.arg(path), s.n, s.line, s.heading, s.body, hashtextextended(sqlc.arg(path)::text || ' ' || s.n, 0) & 2147483647,
       section_words(w.search_language, s.heading, sqlc.arg(about)::text, s.body)
FROM (SELECT generate_series(1, cardinality(sqlc.arg(lines)::int[])) AS n, unnest(sqlc.arg(lines)::int[]) AS line,
             unnest(sqlc.arg(headings)::text[]) AS heading, unnest(sqlc.arg(bodies)::text[]) AS body) AS s, workspaces w
WHERE w.id = sqlc.arg(workspace_id);

-- name: SearchTerms :many
-- SearchTerms are the words of a query in the language of a workspace, each with its query and the
-- number of the sampled sections that contain it. A workspace of fewer sections is sampled whole.
WITH sampled AS MATERIALIZED (
    SELECT s.sample, s.words FROM document_sections s WHERE s.workspace_id = sqlc.arg(workspace_id) ORDER BY s.sample LIMIT sqlc.arg(most)::int
), terms AS MATERIALIZED (
    SELECT t.term, term_query(t.term) AS query
    FROM workspaces w, unnest(tsvector_to_array(to_tsvector(w.search_language::regconfig, split_runs(plain_words(sqlc.arg(query)::text), false)))) AS t (term)
    WHERE w.id = sqlc.arg(workspace_id)
)
SELECT t.term::text AS term, t.query::text AS query, (SELECT count(*) FROM sampled s WHERE s.words @@ t.query)::int AS held,
       (SELECT count(*) FROM sampled)::int AS sections, coalesce((SELECT max(s.sample) FROM sampled s), 0)::int AS reach
FROM terms t ORDER BY held, term;

-- name: SectionsRanked :many
-- SectionsRanked are the best sections for the terms of a query, best first. queries and heads choose
-- the candidates, a bounded number each. A section has the phrases, and no section of its document has
-- an excluded word.
WITH operators AS MATERIALIZED (
    SELECT websearch_to_tsquery(w.search_language::regconfig, sqlc.arg(phrases)::text) AS phrases,
           websearch_to_tsquery(w.search_language::regconfig, sqlc.arg(excluded)::text) AS excluded
    FROM workspaces w WHERE w.id = sqlc.arg(workspace_id)
), candidates AS MATERIALIZED (
    SELECT found.path, found.n
    FROM (SELECT unnest(sqlc.arg(queries)::text[]) AS query) q CROSS JOIN operators o
    CROSS JOIN LATERAL (
        SELECT s.path, s.n FROM document_sections s
        WHERE s.workspace_id = sqlc.arg(workspace_id) AND s.words @@ (q.query::tsquery && o.phrases) AND starts_with(s.path, sqlc.arg(prefix)::text)
          AND (numnode(o.excluded) = 0 OR NOT EXISTS (
              SELECT FROM document_sections x WHERE x.workspace_id = s.workspace_id AND x.path = s.path AND x.words @@ o.excluded))
        LIMIT sqlc.arg(most)::int) found
    UNION
    SELECT found.path, found.n FROM operators o CROSS JOIN LATERAL (
        SELECT s.path, s.n FROM document_sections s
        WHERE s.workspace_id = sqlc.arg(workspace_id) AND ts_filter(s.words, '{a}') @@ sqlc.arg(heads)::text::tsquery AND s.words @@ (sqlc.arg(heads)::text::tsquery && o.phrases) AND starts_with(s.path, sqlc.arg(prefix)::text)
          AND (numnode(o.excluded) = 0 OR NOT EXISTS (
              SELECT FROM document_sections x WHERE x.workspace_id = s.workspace_id AND x.path = s.path AND x.words @@ o.excluded))
        LIMIT sqlc.arg(most)::int) found
), terms AS MATERIALIZED (
    SELECT t.term::tsquery AS term, t.weight
    FROM (SELECT unnest(sqlc.arg(terms)::text[]) AS term, unnest(sqlc.arg(weights)::float8[]) AS weight) t
)
SELECT s.path, s.n, (m.score * m.covered * (1 + ts_rank_cd(s.words, sqlc.arg(every)::text::tsquery)))::float8 AS score, m.covered::float8 AS covered
FROM candidates c
JOIN document_sections s ON s.workspace_id = sqlc.arg(workspace_id) AND s.path = c.path AND s.n = c.n
CROSS JOIN LATERAL (
    SELECT sum(r.weight * r.rank) AS score, sum(r.weight) FILTER (WHERE r.rank > 0) AS covered
    FROM (SELECT t.weight, ts_rank('{0.5, 0.5, 0.6, 0.9}', s.words, t.term, 1) AS rank FROM terms t) r) m
ORDER BY score DESC, s.path COLLATE "C", s.n LIMIT sqlc.arg(best)::int;

-- name: SectionsShown :many
-- SectionsShown are sections in the order in which they are named. marked is the text with the words of
-- the query between two marks.
SELECT s.path, s.n, d.title, s.line, s.heading, s.body,
       ts_headline(w.search_language::regconfig, blank_runs(plain_words(s.body)), sqlc.arg(any_term)::text::tsquery,
           'HighlightAll=true, StartSel="' || sqlc.arg(mark)::text || '", StopSel="' || sqlc.arg(mark)::text || '"')::text AS marked
FROM (SELECT unnest(sqlc.arg(paths)::text[]) AS path, unnest(sqlc.arg(numbers)::int[]) AS n, generate_series(1, cardinality(sqlc.arg(numbers)::int[])) AS place) f
JOIN document_sections s ON s.workspace_id = sqlc.arg(workspace_id) AND s.path = f.path AND s.n = f.n
JOIN documents d ON d.workspace_id = s.workspace_id AND d.path = s.path
JOIN workspaces w ON w.id = s.workspace_id
ORDER BY f.place;

-- name: VectorsAdopt :exec
-- VectorsAdopt makes this model the one whose vectors are in the database. The process that started
-- last decides: processes with another model search without vectors from then on.
SELECT vectors_adopt(sqlc.arg(model)::text, sqlc.arg(worker)::uuid);

-- name: VectorsTurn :one
-- VectorsTurn makes this process the one that asks for vectors, unless another one does.
UPDATE vector_index SET worker = sqlc.arg(worker), worker_until = now() + make_interval(secs => sqlc.arg(seconds)::int)
WHERE model = sqlc.arg(model) AND (worker = sqlc.arg(worker) OR worker_until <= now())
RETURNING dimensions;

-- name: VectorsAre :one
SELECT model, dimensions FROM vector_index;

-- name: VectorsAvailable :one
-- VectorsAvailable is yes, absent, or the statement that a superuser must run, which it tries if make.
SELECT vectors_available(sqlc.arg(make)::boolean)::text;

-- name: VectorsReset :exec
SELECT vectors_reset(sqlc.arg(dimensions)::int, sqlc.arg(model)::text, sqlc.arg(worker)::uuid);

-- name: DocumentsUnembedded :many
-- DocumentsUnembedded are documents whose passages may lack vectors.
SELECT workspace_id, path, version FROM documents
WHERE embedded <> version AND indexed = version ORDER BY workspace_id, path LIMIT $1;

-- name: VectorsLacking :many
SELECT l.digest::uuid AS digest, l.passage::text AS passage FROM vectors_lacking(sqlc.arg(workspace_id)::uuid, sqlc.arg(path)::text) AS l (digest, passage);

-- name: VectorsStore :one
-- VectorsStore is false if this process has lost its turn.
SELECT vectors_store(sqlc.arg(model)::text, sqlc.arg(worker)::uuid, sqlc.arg(workspace_id)::uuid, sqlc.arg(path)::text, sqlc.arg(digests)::uuid[], sqlc.arg(vectors)::text[])::boolean;

-- name: DocumentEmbedded :exec
-- DocumentEmbedded records that the passages of this version have vectors.
UPDATE documents SET embedded = version WHERE workspace_id = $1 AND path = $2 AND version = $3;

-- name: SectionsNear :many
-- SectionsNear are the sections nearest to a vector, nearest first.
SELECT f.path::text AS path, f.n::int AS n, f.similarity::float8 AS similarity
FROM sections_near(sqlc.arg(workspace_id)::uuid, sqlc.arg(prefix)::text, sqlc.arg(vector)::text, sqlc.arg(phrases)::text, sqlc.arg(excluded)::text, sqlc.arg(most)::int) AS f (path, n, similarity);
