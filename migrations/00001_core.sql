-- +goose Up

-- What the service encrypts before PostgreSQL sees it has a type of its own: an
-- envelope of the vault. Plain text does not fit into such a column, and the rotation
-- of master keys finds every column there is.
CREATE DOMAIN sealed AS bytea
    CHECK (substring(VALUE FROM 1 FOR 1) = '\x01' AND octet_length(VALUE) >= 90);

-- The id of the master key that an envelope was sealed under.
CREATE FUNCTION sealed_under(envelope bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT convert_from(substring(envelope FROM 3 FOR get_byte(envelope, 1)), 'SQL_ASCII') $$;

-- A workspace is one agent: its instructions, its model, its limits, and
-- everything that belongs to it. A row here is the tenant of every other row.
CREATE TABLE workspaces (
    id                   uuid PRIMARY KEY,
    slug                 text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    name                 text NOT NULL,
    instructions         text NOT NULL DEFAULT '',
    model                text,             -- null: the service's own model
    max_response_seconds int  NOT NULL DEFAULT 600 CHECK (max_response_seconds BETWEEN 1 AND 3600),
    max_turns            int  NOT NULL DEFAULT 50  CHECK (max_turns BETWEEN 1 AND 200),
    max_running          int  NOT NULL DEFAULT 16  CHECK (max_running >= 1),
    history_tokens       int  NOT NULL DEFAULT 24000 CHECK (history_tokens >= 0),
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now()
);

-- The public half of an API key is its id; of the secret only a hash is stored.
CREATE TABLE api_keys (
    id           text PRIMARY KEY,          -- the 8 characters after "prl_"
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name         text NOT NULL,
    secret_hash  bytea NOT NULL,            -- SHA-256 of the secret
    last4        text NOT NULL,
    scopes       text[] NOT NULL,           -- as granted; implied ones are not listed
    loopback     boolean NOT NULL DEFAULT false, -- accepted from 127.0.0.0/8 and ::1 only
    created_by   text,                      -- key id, or null for the command line
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    last_used_at timestamptz,               -- written at most once a minute
    revoked_at   timestamptz,
    replaced_by  text REFERENCES api_keys
);
CREATE INDEX api_keys_workspace ON api_keys (workspace_id, created_at);

-- A session is one conversation. Every append to its log holds the lock of this
-- row: that is what makes seq a safe cursor.
CREATE TABLE sessions (
    id            uuid PRIMARY KEY,
    workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    caller_id     text,                      -- opaque; the session key is "api:" || caller_id
    title         text NOT NULL DEFAULT '',
    epoch         bigint NOT NULL DEFAULT 0, -- the fence: raised whenever the right to write changes hands
    last_seq      bigint NOT NULL DEFAULT 0, -- seq of the newest event
    last_ord      bigint NOT NULL DEFAULT 0, -- number of events ever written
    turn_id       uuid,                      -- the newest turn that is not lined up behind another
    message_count int    NOT NULL DEFAULT 0,
    input_tokens  bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_usd      numeric(18,8),             -- null while no turn had a known price
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now() -- last message or end of a turn: the order of the list
) WITH (fillfactor = 50);                    -- half of every page is kept for HOT updates of last_seq
CREATE UNIQUE INDEX sessions_caller ON sessions (workspace_id, caller_id) WHERE caller_id IS NOT NULL;
CREATE INDEX sessions_recent ON sessions (workspace_id, updated_at DESC, id DESC);

-- A turn is one message and the agent's answer to it.
CREATE TABLE turns (
    id             uuid PRIMARY KEY,
    session_id     uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    workspace_id   uuid NOT NULL,
    state          text NOT NULL CHECK (state IN ('lined_up', 'queued', 'running', 'waiting', 'completed', 'failed', 'canceled')),
    error          text,                     -- code of the error event
    start_seq      bigint NOT NULL DEFAULT 0,-- seq of its open event
    end_seq        bigint,                   -- seq of its done event
    epoch          bigint NOT NULL DEFAULT 0,-- the session's epoch under which it runs
    node           int,                      -- whose worker; an advisory lock in pg_locks proves it alive
    lease_until    timestamptz,              -- renewed while it runs, PostgreSQL's clock
    job_id         bigint,                   -- the River job that shall run it
    halted_at      timestamptz,              -- a cancelled turn's worker has confirmed its stop
    max_response_seconds int NOT NULL,
    max_turns      int  NOT NULL,
    active_seconds double precision NOT NULL DEFAULT 0, -- time used by earlier attempts, waiting not counted
    max_cost_usd   numeric(18,8),            -- null: no limit
    key_id         text,                     -- the API key that sent the message
    scopes         text[] NOT NULL DEFAULT '{}', -- what that key may do, implied scopes among them
    request_hash   bytea,                    -- SHA-256 of the request that started it
    prompt         sealed,                   -- what the model is told instead of the message; gone when the turn ends
    response_schema json,                    -- what the final answer must fit
    secrets        text[] NOT NULL DEFAULT '{}', -- names of the credentials that the run may use
    rejected       json,                     -- attachments that were refused
    callback_id    uuid,                     -- where its end is reported to
    created_at     timestamptz NOT NULL DEFAULT now(),
    started_at     timestamptz,              -- of the present attempt
    finished_at    timestamptz
) WITH (fillfactor = 70);
-- One turn at a time: whoever races, PostgreSQL decides.
CREATE UNIQUE INDEX turns_active ON turns (session_id) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX turns_session ON turns (session_id, created_at);
CREATE INDEX turns_lined_up ON turns (session_id, start_seq) WHERE state = 'lined_up';
CREATE INDEX turns_request ON turns (workspace_id, request_hash) WHERE request_hash IS NOT NULL;
CREATE INDEX turns_live ON turns (workspace_id, state) WHERE state IN ('queued', 'running');
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL; -- which may still be replayed

-- What a turn has to ask somebody: may these tool calls run, or what is this secret?
-- It is answered once; who answers first decides, in the WHERE of an UPDATE. The
-- answer itself is an event, and a secret's value is never here.
CREATE TABLE approvals (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    session_id   uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    turn_id      uuid NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('approval', 'secret')),
    status       text NOT NULL DEFAULT 'pending'
                 CHECK (status IN ('pending', 'allowed', 'denied', 'provided', 'skipped', 'expired', 'canceled')),
    seq          bigint NOT NULL DEFAULT 0,  -- of its input_required event
    request      json,                       -- the input_required event's data; null once the session is erased
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,       -- nobody can answer from here on, whether or not anything has noticed
    decided_at   timestamptz,
    decided_by   text,                       -- API key, or null where nobody answered
    reason       text,                       -- of a denial
    pattern      text                        -- added to the allow-list
);
CREATE UNIQUE INDEX approvals_open ON approvals (turn_id) WHERE status = 'pending'; -- one question at a time
CREATE INDEX approvals_inbox ON approvals (workspace_id, created_at DESC, id DESC);
CREATE INDEX approvals_turn ON approvals (turn_id, seq);
CREATE INDEX approvals_session ON approvals (session_id);
CREATE INDEX approvals_overdue ON approvals (expires_at) WHERE status = 'pending';

-- A request that came with an Idempotency-Key, and the turn it made. Repeating it
-- within a day finds that turn; another request under the same key is refused.
CREATE TABLE idempotency_keys (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    route        text NOT NULL,              -- operationId
    key          text NOT NULL,
    hash         bytea NOT NULL,             -- SHA-256 of the request
    turn_id      uuid NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, route, key)
);

-- What lists and histories show. The log is the truth; these rows are written in
-- the transactions that start and finish a turn.
CREATE TABLE messages (
    id           uuid PRIMARY KEY,
    session_id   uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    turn_id      uuid NOT NULL,
    workspace_id uuid NOT NULL,
    role         text NOT NULL CHECK (role IN ('user', 'assistant')),
    content      text,
    label        text,
    skill        text,
    status       text NOT NULL CHECK (status IN ('completed', 'in_progress', 'failed', 'canceled')),
    error        text,
    structured_result json,
    attachments  json,                        -- produced files, as the attachment event shows them
    tool_calls   json NOT NULL DEFAULT '[]',
    refs         json NOT NULL DEFAULT '[]',  -- [{path, source}], first appearance first
    usage        json,
    first_seq    bigint NOT NULL,             -- orders the messages of a session
    last_seq     bigint NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_turn ON messages (turn_id);
CREATE INDEX messages_session ON messages (session_id, first_seq);

-- The log. Append-only; data holds exactly the bytes that streams send. Text
-- deltas live in daily partitions, so that they can be dropped once no replay
-- needs them; every other row lives in monthly ones until the audit retention ends.
CREATE TABLE events (
    seq        bigserial,
    session_id uuid        NOT NULL,
    at         timestamptz NOT NULL,
    delta      boolean     NOT NULL,
    ord        bigint      NOT NULL,  -- 1, 2, 3 … in the session: SQL can prove that nothing is missing
    turn_id    uuid        NOT NULL,
    kind       text        NOT NULL,
    data       json        NOT NULL,
    PRIMARY KEY (session_id, seq, at, delta)
) PARTITION BY LIST (delta);
CREATE TABLE events_delta  PARTITION OF events FOR VALUES IN (true)  PARTITION BY RANGE (at);
CREATE TABLE events_record PARTITION OF events FOR VALUES IN (false) PARTITION BY RANGE (at);

-- Makes the partitions for the next days. Every replica calls it at start and
-- then hourly; concurrent calls wait for each other.
-- +goose StatementBegin
CREATE FUNCTION events_partitions(days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    made  int := 0;
    today timestamptz := date_trunc('day', now(), 'UTC');
    month timestamptz := date_trunc('month', now(), 'UTC');
    starts timestamptz;
    ends timestamptz;
    name  text;
BEGIN
    PERFORM pg_advisory_xact_lock(7237120101);
    starts := today - interval '1 day';
    WHILE starts < today + make_interval(days => days) LOOP
        ends := starts + interval '1 day';
        name := 'events_delta_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF events_delta FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    starts := (month AT TIME ZONE 'UTC' - interval '1 month') AT TIME ZONE 'UTC';
    WHILE starts < today + make_interval(days => days) LOOP
        ends := (starts AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
        name := 'events_record_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMM');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF events_record FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd
SELECT events_partitions(4);

-- The nodes that are alive: each holds the advisory lock (20561, node) on the
-- connection that listens, and PostgreSQL drops it the moment the process dies.
-- +goose StatementBegin
CREATE FUNCTION nodes_alive() RETURNS SETOF int LANGUAGE sql STABLE AS $$
    SELECT DISTINCT objid::bigint::int FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 20561 AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
$$;
-- +goose StatementEnd

-- What a workspace's agent may read: wiki pages below wiki/, other files anywhere else.
CREATE TABLE documents (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    path         text NOT NULL,      -- "wiki/onboarding.md", "policies/travel.txt"
    title        text NOT NULL,
    content      text NOT NULL,
    version      int  NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, path)
);
