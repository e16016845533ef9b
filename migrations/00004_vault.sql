-- +goose Up

-- The master keys under which something may be sealed. The keys themselves are never
-- here: the proof opens with the right key only, so that a wrong one under a known id
-- is found before it seals or loses anything.
CREATE TABLE vault_keys (
    id         text PRIMARY KEY,
    proof      sealed NOT NULL CHECK (sealed_under(proof) = id),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- A credential is a name, the hosts that may receive its value, and the value, which
-- may be given later. The envelope is bound to everything in the key and to hosts and
-- surfaces: it does not open in a row that was changed by anyone but the service.
CREATE TABLE credentials (
    workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name          text NOT NULL CHECK (name ~ '^[A-Z][A-Z0-9_]{0,63}$'),
    version       int  NOT NULL DEFAULT 0,          -- raised by every change; 0: nothing was ever registered
    allowed_hosts text[] NOT NULL DEFAULT '{}',     -- sorted
    in_query      boolean NOT NULL DEFAULT false,   -- may also stand in query strings,
    in_body       boolean NOT NULL DEFAULT false,   -- in request bodies,
    allow_http    boolean NOT NULL DEFAULT false,   -- and travel without TLS
    value         sealed,                           -- null: nobody gave it yet
    -- A key that is out of use takes no new values, not even from a replica that has
    -- not heard of it.
    key_id        text GENERATED ALWAYS AS (sealed_under(value)) STORED REFERENCES vault_keys,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    updated_by    text NOT NULL DEFAULT '',
    removed_at    timestamptz,
    PRIMARY KEY (workspace_id, name),
    CHECK (removed_at IS NULL OR value IS NULL)
);

-- What happened to credentials, for audits. Never a value, nor its length.
CREATE TABLE credential_uses (
    id            bigserial PRIMARY KEY,
    workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name          text NOT NULL,
    version       int  NOT NULL,
    what          text NOT NULL,    -- registered, set, rotated, provided, removed
    allowed_hosts text[] NOT NULL,
    by            text NOT NULL,
    at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX credential_uses_name ON credential_uses (workspace_id, name, id);
