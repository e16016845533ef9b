-- +goose NO TRANSACTION
-- +goose Up

-- Each statement locks one table and releases it.

-- What the caller of a message chose: parameters of the model, and which of the caller's own tools it
-- must call; null: nothing.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS options json;

-- Whether callers may send instructions and parameters of the model with their messages.
ALTER TABLE workspaces
    ADD COLUMN IF NOT EXISTS caller_instructions boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS caller_parameters   boolean NOT NULL DEFAULT true;
