-- name: BudgetsApply :many
-- BudgetsApply are the budgets of a message: that of its workspace, and those of its key and its user,
-- their own before the common one. With them come the use of today, and the model of a version of an
-- agent, or of the default agent.
SELECT b.kind, b.max_cost_usd, b.max_tokens, coalesce(u.cost_usd, 0)::numeric AS cost_usd, coalesce(u.tokens, 0)::bigint AS tokens,
       extract(epoch FROM date_trunc('day', clock_timestamp(), 'UTC') + interval '24 hours' - clock_timestamp())::float8 AS seconds_left,
       coalesce((SELECT v.model FROM agent_versions v WHERE v.id = coalesce(sqlc.narg(agent_version_id)::uuid,
           (SELECT d.published_id FROM agents d WHERE d.workspace_id = sqlc.arg(workspace_id)::uuid AND d.is_default))), '')::text AS model
FROM (
    SELECT DISTINCT ON (o.kind) o.kind, o.max_cost_usd, o.max_tokens, s.subject AS counted
    FROM (SELECT unnest(ARRAY['workspace', 'key', 'user']) AS kind, unnest(ARRAY['', sqlc.arg(key_id)::text, sqlc.arg(end_user)::text]) AS subject) s
    JOIN budgets o ON o.workspace_id = sqlc.arg(workspace_id)::uuid AND o.kind = s.kind AND o.subject IN ('', s.subject)
    WHERE s.kind = 'workspace' OR s.subject <> ''
    ORDER BY o.kind, o.subject DESC
) b
LEFT JOIN LATERAL (
    SELECT sum(c.cost_usd) AS cost_usd, sum(c.tokens) AS tokens FROM budget_use c
    WHERE c.workspace_id = sqlc.arg(workspace_id)::uuid AND c.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
      AND c.kind = b.kind AND c.subject = budget_subject(b.kind, b.counted)
) u ON true
ORDER BY b.kind DESC;

-- name: BudgetUseAdd :exec
-- BudgetUseAdd counts a reply of a model. The rows of one connection are its own most of the time;
-- their order is the same everywhere.
INSERT INTO budget_use AS u (workspace_id, day, kind, subject, shard, cost_usd, tokens)
SELECT sqlc.arg(workspace_id)::uuid, (clock_timestamp() AT TIME ZONE 'UTC')::date, s.kind, budget_subject(s.kind, s.subject), pg_backend_pid() % 8,
       sqlc.arg(cost_usd)::numeric, sqlc.arg(tokens)::bigint
FROM (SELECT unnest(ARRAY['workspace', 'key', 'user']) AS kind, unnest(ARRAY['', sqlc.arg(key_id)::text, sqlc.arg(end_user)::text]) AS subject) s
WHERE s.kind = 'workspace' OR s.subject <> ''
ORDER BY s.kind
ON CONFLICT (workspace_id, day, kind, subject, shard) DO UPDATE
SET cost_usd = u.cost_usd + excluded.cost_usd, tokens = u.tokens + excluded.tokens;

-- name: BudgetUsePurge :exec
DELETE FROM budget_use WHERE day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1;

-- name: BudgetsList :many
-- BudgetsList are the budgets of a workspace with the use of today. A common budget has none: each key
-- or user has its own.
SELECT b.kind, b.subject, b.max_cost_usd, b.max_tokens, b.updated_at, coalesce(u.cost_usd, 0)::numeric AS cost_usd, coalesce(u.tokens, 0)::bigint AS tokens
FROM budgets b
LEFT JOIN LATERAL (
    SELECT sum(c.cost_usd) AS cost_usd, sum(c.tokens) AS tokens FROM budget_use c
    WHERE c.workspace_id = b.workspace_id AND c.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
      AND c.kind = b.kind AND c.subject = budget_subject(b.kind, b.subject)
) u ON true
WHERE b.workspace_id = $1
ORDER BY b.kind DESC, b.subject;

-- name: BudgetSet :execrows
-- BudgetSet creates or replaces a budget, unless it has changed since it was seen; null: it may have.
INSERT INTO budgets (workspace_id, kind, subject, max_cost_usd, max_tokens) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (workspace_id, kind, subject) DO UPDATE
SET max_cost_usd = excluded.max_cost_usd, max_tokens = excluded.max_tokens, updated_at = clock_timestamp()
WHERE sqlc.narg(seen)::timestamptz IS NULL OR budgets.updated_at = sqlc.narg(seen);

-- name: BudgetDelete :execrows
DELETE FROM budgets WHERE workspace_id = $1 AND kind = $2 AND subject = $3;
