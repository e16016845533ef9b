-- +goose Up

-- The person behind the key that answered, as the backend that holds the key names them.
ALTER TABLE approvals ADD COLUMN actor text;
