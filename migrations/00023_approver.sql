-- +goose Up

-- Who may approve. Both rules are off by default.
ALTER TABLE workspaces
    ADD COLUMN separate_approver boolean NOT NULL DEFAULT false, -- the key that sent a message cannot allow its calls
    ADD COLUMN admin_patterns    boolean NOT NULL DEFAULT false; -- decisions add no allow-list patterns
