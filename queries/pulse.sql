-- name: PulseRead :one
-- PulseRead reads PostgreSQL's clock, and for each kind of work whether there are rows that need a
-- look. Each condition reads few rows: those of a partial index, or of a small table. seq is
-- the newest that was drawn for an event, whether it is committed or not.
SELECT clock_timestamp()::timestamptz AS now,
       coalesce(pg_sequence_last_value('events_seq_seq'::regclass), 0)::bigint AS seq,
       EXISTS (SELECT FROM turns t WHERE t.state = 'running')::boolean AS running,
       EXISTS (SELECT FROM turns t WHERE t.state = 'queued')::boolean AS queued,
       EXISTS (SELECT FROM approvals a WHERE a.status = 'pending' AND a.expires_at <= clock_timestamp())::boolean AS overdue,
       EXISTS (SELECT FROM approvals a WHERE a.status = 'pending' AND a.kind = 'connect')::boolean AS connects,
       EXISTS (SELECT FROM callback_deliveries d WHERE d.status = 'pending')::boolean AS deliveries,
       EXISTS (SELECT FROM files f WHERE f.state = 'fetching' AND f.fetch_after <= now())::boolean AS fetches,
       EXISTS (SELECT FROM open_streams o WHERE o.expires_at > now())::boolean AS streams,
       EXISTS (SELECT FROM server_state p WHERE p.paused_at IS NOT NULL)::boolean AS server_paused,
       EXISTS (SELECT FROM workspaces w WHERE w.paused_at IS NOT NULL)::boolean AS workspace_paused;
