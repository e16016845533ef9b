-- +goose Up

-- A skill is a task that callers start by its name. The row says which of its
-- versions runs; what a version says is in skill_versions.
CREATE TABLE skills (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    name         text NOT NULL,              -- as its author writes it
    fold         text NOT NULL,              -- what names are compared by; PostgreSQL never computes it
    status       text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'active', 'archived')),
    newest       int  NOT NULL DEFAULT 0,    -- number of the last version
    active       int,                        -- number of the version that runs
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (workspace_id, fold),
    CHECK ((status = 'active') = (active IS NOT NULL))
);

-- What a skill says. A version is never changed and lives as long as its skill.
CREATE TABLE skill_versions (
    skill_id     uuid NOT NULL REFERENCES skills ON DELETE CASCADE,
    version      int  NOT NULL CHECK (version >= 1),
    workspace_id uuid NOT NULL,
    description  text NOT NULL,
    document     text NOT NULL,              -- SKILL.md, as it was pushed
    contract     json,                       -- {"inputs":[…]}; null: the skill declares none
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (skill_id, version)
);

-- Who did what to a skill, and when. Append-only.
CREATE TABLE skill_changes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id uuid NOT NULL,
    skill_id     uuid NOT NULL REFERENCES skills ON DELETE CASCADE,
    action       text NOT NULL CHECK (action IN ('push', 'publish', 'archive')),
    version      int,                        -- null: archived
    actor        text NOT NULL,              -- "cli:anna", "key:7F3kQ2xY"
    at           timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX skill_changes_skill ON skill_changes (skill_id, id);
