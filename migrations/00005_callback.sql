-- +goose Up

-- What callbacks of a workspace are signed with. The newest is used; the one before
-- it signs beside it until it expires, so that receivers can change over.
CREATE TABLE callback_secrets (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    secret       sealed NOT NULL,            -- bound to the workspace and the id
    shown        boolean NOT NULL DEFAULT false, -- it is printed once
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz                 -- null: the newest
);
-- Two that are the newest cannot be.
CREATE UNIQUE INDEX callback_secrets_newest ON callback_secrets (workspace_id) WHERE expires_at IS NULL;
CREATE INDEX callback_secrets_workspace ON callback_secrets (workspace_id);

-- Where the news of a turn go, as its message asked.
CREATE TABLE callbacks (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    session_id   uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    turn_id      uuid NOT NULL UNIQUE,
    url          text NOT NULL,
    metadata     json NOT NULL,              -- an object of strings, sent back as it came
    disabled_at  timestamptz,                -- the receiver answered 410 Gone
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX callbacks_session ON callbacks (session_id);
CREATE INDEX callbacks_workspace ON callbacks (workspace_id);

-- One event that is reported. Its row is written by the transaction that writes the
-- event, so no report is lost and none is made up. Its id is the webhook-id.
CREATE TABLE callback_deliveries (
    id           uuid PRIMARY KEY,
    callback_id  uuid NOT NULL REFERENCES callbacks ON DELETE CASCADE,
    workspace_id uuid NOT NULL,
    type         text NOT NULL CHECK (type IN ('turn.completed', 'turn.failed', 'turn.canceled', 'turn.input_required')),
    seq          bigint NOT NULL,            -- of the event
    status       text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
    body         bytea,                      -- what is sent; made by the first attempt and never changed
    job_id       bigint,                     -- the River job that may deliver it: the fence against others
    attempts     int NOT NULL DEFAULT 0,     -- made in all
    tries        int NOT NULL DEFAULT 0,     -- made since it was asked for: the place in the schedule
    next_at      timestamptz DEFAULT now(),  -- when the next attempt is due; null: there is none
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (callback_id, seq),
    CHECK ((status = 'pending') = (next_at IS NOT NULL))
);
CREATE INDEX callback_deliveries_due ON callback_deliveries (next_at) WHERE status = 'pending';
CREATE INDEX callback_deliveries_recent ON callback_deliveries (workspace_id, id DESC);

-- Every attempt to deliver, for people who wonder. What the receiver answered is not
-- kept, its status apart.
CREATE TABLE callback_attempts (
    delivery_id  uuid NOT NULL REFERENCES callback_deliveries ON DELETE CASCADE,
    n            int NOT NULL,               -- from 1
    at           timestamptz NOT NULL,
    status       int,                        -- null: no answer came
    latency_ms   int NOT NULL,
    error        text,                       -- null: delivered
    PRIMARY KEY (delivery_id, n)
);
