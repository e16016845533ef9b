-- +goose Up

-- Users of the web application.
CREATE TABLE users (
    id            text PRIMARY KEY,          -- mbr_ and 20 characters
    email         text NOT NULL,
    name          text NOT NULL DEFAULT '',
    password_hash text,                      -- argon2id in PHC format; null: no password
    is_admin      boolean NOT NULL DEFAULT false, -- of the server; owner of every workspace
    disabled_at   timestamptz,
    oidc_subject  text UNIQUE,               -- issuer and subject of the identity provider
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    last_login_at timestamptz
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

-- The roles of users in workspaces.
CREATE TABLE members (
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    user_id      text NOT NULL REFERENCES users ON DELETE CASCADE,
    role         text NOT NULL CHECK (role IN ('owner', 'editor', 'approver', 'viewer')),
    from_oidc    boolean NOT NULL DEFAULT false, -- the identity provider's groups decide
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX members_user ON members (user_id);

-- Browsers that are signed in. Of the cookie's secret only a hash is stored.
CREATE TABLE web_sessions (
    id          text PRIMARY KEY,
    user_id     text NOT NULL REFERENCES users ON DELETE CASCADE,
    secret_hash bytea NOT NULL,              -- SHA-256
    address     text NOT NULL DEFAULT '',
    agent       text NOT NULL DEFAULT '',    -- User-Agent at the sign-in
    created_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now() -- written at most once a minute
);
CREATE INDEX web_sessions_user ON web_sessions (user_id, seen_at DESC);
CREATE INDEX web_sessions_seen ON web_sessions (seen_at);

-- Links that work once: for the first administrator, for a new password, to sign in.
CREATE TABLE login_links (
    hash       bytea PRIMARY KEY,            -- SHA-256 of the token
    kind       text NOT NULL CHECK (kind IN ('setup', 'password', 'login')),
    user_id    text REFERENCES users ON DELETE CASCADE, -- null: setup
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CHECK ((kind = 'setup') = (user_id IS NULL))
);
CREATE INDEX login_links_user ON login_links (user_id);

-- Sign-ins at the identity provider that have begun.
CREATE TABLE oidc_states (
    hash       bytea PRIMARY KEY,            -- SHA-256 of the state
    nonce      text NOT NULL,
    verifier   text NOT NULL,                -- of PKCE
    next       text NOT NULL,                -- the page to open afterwards
    expires_at timestamptz NOT NULL
);

SELECT admin_log_on('users', '{password_hash}', '{last_login_at}');
SELECT admin_log_on('members');

-- A personal token is a key that can do what its member may do now.
ALTER TABLE api_keys ADD COLUMN member_id text REFERENCES users ON DELETE CASCADE;
CREATE INDEX api_keys_member ON api_keys (member_id) WHERE member_id IS NOT NULL;

-- The requests of members are counted, too: key_id is the id of a key or of a user.
ALTER TABLE rate_limits DROP CONSTRAINT rate_limits_key_id_fkey;
-- +goose StatementBegin
CREATE FUNCTION rate_limits_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM rate_limits WHERE key_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER rate_limits_forget AFTER DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION rate_limits_forget();
CREATE TRIGGER rate_limits_forget AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION rate_limits_forget();
