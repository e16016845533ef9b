-- +goose Up

-- output_at divides content: the text of the steps before the last, and the text of the last step,
-- which is the final answer. The default fits rows of earlier releases, which have no steps.
ALTER TABLE messages ADD COLUMN output_at integer NOT NULL DEFAULT 0; -- bytes of content before the text of the turn's last step
