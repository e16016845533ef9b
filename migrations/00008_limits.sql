-- +goose Up

-- Limits of a workspace's keys. Null is the server's own setting, 0 no limit.
ALTER TABLE workspaces
    ADD COLUMN messages_per_minute int CHECK (messages_per_minute >= 0),
    ADD COLUMN calls_per_minute    int CHECK (calls_per_minute >= 0),
    ADD COLUMN open_streams        int CHECK (open_streams >= 0);

-- What each key has used of its minute. Losing it in a crash costs nobody anything:
-- unlogged, a count is a round trip and no flush.
CREATE UNLOGGED TABLE rate_limits (
    key_id  text NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    class   text NOT NULL,
    full_at timestamptz NOT NULL,            -- when the key has its whole quota again
    PRIMARY KEY (key_id, class)
) WITH (fillfactor = 50);                    -- every count is a HOT update

-- The streams that each replica holds open, by key. A replica that is dead or frozen
-- counts for nothing.
CREATE UNLOGGED TABLE open_streams (
    node       int PRIMARY KEY,
    held       jsonb NOT NULL,               -- {"<key id>": 3}
    expires_at timestamptz NOT NULL          -- renewed every second
);

-- +goose StatementBegin
CREATE FUNCTION streams_elsewhere(me int) RETURNS TABLE (key_id text, streams bigint) LANGUAGE sql STABLE AS $$
    SELECT h.key, sum(h.value::bigint)::bigint FROM open_streams o, jsonb_each_text(o.held) h
    WHERE o.node <> me AND o.expires_at > now() AND o.node IN (SELECT nodes_alive())
    GROUP BY h.key;
$$;
-- +goose StatementEnd

-- A workspace may have one webhook_token, for callers from before there were keys.
ALTER TABLE api_keys
    ADD COLUMN webhook boolean NOT NULL DEFAULT false,
    ADD CHECK (NOT webhook OR scopes = ARRAY['chat', 'sessions:read'] AND expires_at IS NULL AND NOT loopback);
CREATE UNIQUE INDEX api_keys_webhook ON api_keys (workspace_id) WHERE webhook AND revoked_at IS NULL;

-- The answers to requests that came with an Idempotency-Key and start no turn.
CREATE TABLE idempotent_answers (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    route        text NOT NULL,              -- operationId
    key          text NOT NULL,
    hash         bytea NOT NULL,             -- SHA-256 of the request, without its secrets
    status       int NOT NULL,
    answer       bytea NOT NULL,             -- exactly as it was sent
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, route, key)
);
CREATE INDEX idempotent_answers_age ON idempotent_answers (created_at);
