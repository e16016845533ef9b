-- +goose Up

-- Protocols in which the sender gives a message its id show it that id again.
ALTER TABLE messages ADD COLUMN named text; -- what its sender calls it; null: nothing

-- What an answer that failed says, beside the code: lists and reports have no log at hand.
ALTER TABLE messages ADD COLUMN failure text;
