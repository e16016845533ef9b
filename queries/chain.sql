-- name: ChainLock :one
-- ChainLock lets one transaction at a time extend the chain. It does not wait.
SELECT pg_try_advisory_xact_lock(20565, 1);

-- name: ChainHead :one
-- ChainHead is the newest link.
SELECT number, hash, upto, at, key_id, signature FROM chain_links ORDER BY number DESC LIMIT 1;

-- name: ChainClock :one
SELECT clock_timestamp()::timestamptz;

-- name: ChainDueTurns :many
-- ChainDueTurns lists turns that ended after a time and that the chain does not cover, the oldest
-- end first.
SELECT t.session_id, t.finished_at::timestamptz AS finished_at, s.created_at
FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.finished_at >= sqlc.arg(since)::timestamptz
  AND t.end_seq > coalesce((SELECT l.last_seq FROM chain_links l WHERE l.session_id = t.session_id ORDER BY l.number DESC LIMIT 1), 0)
ORDER BY t.finished_at LIMIT sqlc.arg(n);

-- name: ChainNotices :many
SELECT id, kind, session_id, detail, at FROM chain_notices ORDER BY id LIMIT sqlc.arg(n);

-- name: ChainNoticesDelete :exec
DELETE FROM chain_notices WHERE id = ANY(sqlc.arg(ids)::bigint[]);

-- name: ChainNotice :exec
INSERT INTO chain_notices (kind, session_id, detail) VALUES ($1, $2, $3);

-- name: ChainSessionHeads :many
-- ChainSessionHeads is the newest link of each session.
SELECT DISTINCT ON (l.session_id) l.session_id::uuid AS session_id, l.number, l.last_seq, l.last_ord, l.hash, l.last_at
FROM (SELECT unnest(sqlc.arg(ids)::uuid[]) AS id) w
CROSS JOIN LATERAL (SELECT * FROM chain_links c WHERE c.session_id = w.id ORDER BY c.number DESC LIMIT 1) l;

-- name: ChainForget :exec
-- ChainForget removes the digests of a session's events. The hashes of the links stay.
UPDATE chain_links SET entries = NULL, salt = NULL WHERE session_id = $1 AND entries IS NOT NULL;

-- name: ChainExtend :exec
-- ChainExtend stores links.
INSERT INTO chain_links (number, kind, session_id, after_seq, after_ord, last_seq, last_ord, last_at, entries, salt, digest, detail, upto, at, hash, key_id, signature)
SELECT l.number, l.kind, CASE WHEN l.kind <> 'dropped' THEN l.session_id END, l.after_seq, l.after_ord, l.last_seq, l.last_ord, l.last_at,
       CASE WHEN l.kind <> 'dropped' THEN l.entries END, CASE WHEN l.kind <> 'dropped' THEN l.salt END, l.digest, nullif(l.detail, '')::json,
       sqlc.arg(upto)::timestamptz, sqlc.arg(at)::timestamptz, l.hash, sqlc.arg(key_id)::text, l.signature
FROM (SELECT unnest(sqlc.arg(numbers)::bigint[]) AS number, unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(sessions)::uuid[]) AS session_id,
             unnest(sqlc.arg(after_seqs)::bigint[]) AS after_seq, unnest(sqlc.arg(after_ords)::bigint[]) AS after_ord,
             unnest(sqlc.arg(last_seqs)::bigint[]) AS last_seq, unnest(sqlc.arg(last_ords)::bigint[]) AS last_ord, unnest(sqlc.arg(last_ats)::timestamptz[]) AS last_at,
             unnest(sqlc.arg(entries)::bytea[]) AS entries, unnest(sqlc.arg(salts)::bytea[]) AS salt, unnest(sqlc.arg(digests)::bytea[]) AS digest,
             unnest(sqlc.arg(details)::text[]) AS detail, unnest(sqlc.arg(hashes)::bytea[]) AS hash, unnest(sqlc.arg(signatures)::bytea[]) AS signature) l;

-- name: ChainKeys :many
SELECT id, public_key, before, endorsement, backing FROM chain_keys ORDER BY at, id;

-- name: ChainKeyAdd :exec
INSERT INTO chain_keys (id, public_key, before, endorsement, backing) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;

-- name: ChainCount :one
SELECT count(*) FROM chain_links;

-- name: ChainPage :many
-- ChainPage is one page of the chain, with the hashes that each link follows, the newest link that
-- replaces it because the session was erased, whether it is the session's last one, and whether the
-- session contradicts the erasure that it records.
SELECT l.number, l.kind, l.session_id, l.after_seq, l.after_ord, l.last_seq, l.last_ord, l.last_at, l.entries, l.salt, l.digest, l.detail, l.upto, l.at, l.hash, l.key_id, l.signature,
       p.hash AS previous, b.hash AS before, coalesce(b.last_seq, 0)::bigint AS before_seq,
       coalesce((SELECT e.number FROM chain_links e WHERE e.session_id = l.session_id AND e.number > l.number AND e.kind = 'erased' ORDER BY e.number DESC LIMIT 1), 0)::bigint AS erased_by,
       NOT EXISTS (SELECT FROM chain_links n WHERE n.session_id = l.session_id AND n.number > l.number) AS is_last,
       EXISTS (SELECT FROM sessions s WHERE l.kind = 'erased' AND s.id = l.session_id AND (s.erased_at IS NULL OR NOT EXISTS (SELECT FROM erasures x WHERE x.session_id = s.id))) AS forged
FROM chain_links l
LEFT JOIN chain_links p ON p.number = l.number - 1
LEFT JOIN LATERAL (SELECT c.hash, c.last_seq FROM chain_links c WHERE c.session_id = l.session_id AND c.number < l.number ORDER BY c.number DESC LIMIT 1) b ON true
WHERE l.number > sqlc.arg(after)::bigint
  AND (sqlc.narg(session_id)::uuid IS NULL OR l.session_id = sqlc.narg(session_id)::uuid)
  AND (sqlc.narg(workspace_id)::uuid IS NULL OR l.session_id IN (SELECT s.id FROM sessions s WHERE s.workspace_id = sqlc.narg(workspace_id)::uuid))
  AND (sqlc.narg(since)::timestamptz IS NULL OR l.at >= sqlc.narg(since)::timestamptz)
ORDER BY l.number LIMIT sqlc.arg(n);

-- name: ChainDrops :many
-- ChainDrops are the details of dropped partitions; number 0: it has no link yet.
SELECT number, at, detail::json AS detail FROM chain_links WHERE kind = 'dropped'
UNION ALL SELECT 0, at, detail::json FROM chain_notices WHERE kind = 'dropped';

-- name: ChainOlder :one
-- ChainOlder finds an event that is older than a dropped partition.
SELECT seq, session_id FROM events WHERE delta = $1 AND at < sqlc.arg(before)::timestamptz LIMIT 1;

-- name: ChainHashes :many
-- ChainHashes are the hashes of some links.
SELECT number, hash FROM chain_links WHERE number = ANY(sqlc.arg(numbers)::bigint[]);

-- name: ChainPending :many
-- ChainPending lists the sessions with a notice of an erasure, and whether a session contradicts it.
SELECT DISTINCT n.session_id::uuid AS session_id,
       EXISTS (SELECT FROM sessions s WHERE s.id = n.session_id AND (s.erased_at IS NULL OR NOT EXISTS (SELECT FROM erasures x WHERE x.session_id = s.id))) AS forged
FROM chain_notices n WHERE n.kind = 'erased' AND n.session_id IS NOT NULL;
