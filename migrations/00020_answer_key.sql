-- +goose Up

-- An answer is repeated only to the API key that it was given to, and to the keys that replaced it.
-- Rows that a server of an earlier release writes have none: they last a day.
ALTER TABLE idempotent_answers ADD COLUMN key_id text;
