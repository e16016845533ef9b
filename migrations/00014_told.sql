-- +goose Up

-- A client that sends a request again has not got its answer. One that has got it and says the
-- same once more says something new.
ALTER TABLE turns ADD COLUMN told_at timestamptz; -- when the whole answer had been written to who sent the message
