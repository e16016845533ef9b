-- +goose Up

-- Protocols in which the sender gives a message its id show it that id again.
ALTER TABLE messages ADD COLUMN named text; -- what its sender calls it; null: nothing
