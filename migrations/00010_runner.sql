-- +goose Up

-- Which hosts the tools of a workspace's agent may reach, beside those of the
-- credentials that a run has. A workspace without a row reaches no others.
CREATE TABLE egress_policies (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
    hosts        text[] NOT NULL DEFAULT '{}',   -- "api.example.com", "*.example.com", "example.com:8443"; sorted
    public       boolean NOT NULL DEFAULT false, -- every public host
    updated_at   timestamptz NOT NULL DEFAULT now()
);

-- The requests that tools made, or were kept from making. A row is there before its
-- request leaves. Never a value, a query or a header.
CREATE TABLE egress_requests (
    id           bigserial PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    session_id   uuid NOT NULL,
    turn_id      uuid NOT NULL,
    call_id      text NOT NULL,                  -- the tool call
    at           timestamptz NOT NULL DEFAULT now(),
    method       text NOT NULL,
    scheme       text NOT NULL,
    host         text NOT NULL,
    path         text NOT NULL,
    credentials  text[] NOT NULL,                -- those that were put in: NAME, with the version after an @
    refused      text[] NOT NULL,                -- those whose placeholder stayed as it was: not for this host
    decision     text NOT NULL,
    status       int                             -- of the answer; null where none came, or the process died
);
CREATE INDEX egress_requests_list ON egress_requests (workspace_id, id);
CREATE INDEX egress_requests_session ON egress_requests (session_id);
CREATE INDEX egress_requests_at ON egress_requests USING brin (at);
