-- +goose Up

-- The chain shows changes of the log that were not made by the server. Each link has the digests
-- of some events of a session, follows the link before it by a hash, and is signed.
CREATE TABLE chain_links (
    number     bigint PRIMARY KEY,         -- 1, 2, 3 …: one chain for the whole database
    kind       text NOT NULL CHECK (kind IN ('rows', 'erased', 'dropped')),
    session_id uuid,                       -- null: it covers no session
    after_seq  bigint NOT NULL DEFAULT 0,  -- it covers the session's events after this one
    after_ord  bigint NOT NULL DEFAULT 0,
    last_seq   bigint NOT NULL DEFAULT 0,  -- up to this one
    last_ord   bigint NOT NULL DEFAULT 0,
    last_at    timestamptz NOT NULL,       -- the time of that event
    entries    bytea,                      -- the digests; null once the session is erased
    salt       bytea,                      -- of the digests: without it they reveal nothing about the content
    digest     bytea NOT NULL,             -- SHA-256 of entries
    detail     json,                       -- of a dropped partition: its name, and the time before which its events are gone
    upto       timestamptz NOT NULL,       -- the chain covers all turns that ended before
    at         timestamptz NOT NULL,
    hash       bytea NOT NULL,             -- SHA-256 of all this, of the hash of the link before it and of that of the session's link before it
    key_id     text NOT NULL,
    signature  bytea NOT NULL              -- Ed25519, of the number and the hash
);
CREATE INDEX chain_links_session ON chain_links (session_id, number DESC) WHERE session_id IS NOT NULL;

-- What the next links have to record. Each row is written by the transaction that makes the change.
CREATE TABLE chain_notices (
    id         bigserial PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('late', 'erased', 'dropped')), -- late: an event after the end of its turn
    session_id uuid,
    detail     json,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The public keys of the signatures, which are derived from the vault's master keys. Two keys vouch
-- for each other while the server has both, so a verifier that trusts one of them trusts both.
CREATE TABLE chain_keys (
    id          text PRIMARY KEY,          -- of the master key
    public_key  bytea NOT NULL,
    before      text,                      -- the key before it
    endorsement bytea,                     -- the signature of this key by the key before it
    backing     bytea,                     -- the signature of that key by this one
    at          timestamptz NOT NULL DEFAULT now()
);
