-- +goose Up

-- The largest int stands for "as many earlier turns as fit the model's window", which is the new
-- default: no window is that large, so a server of the release before, which reads a plain number, does
-- the same with it. The old default becomes the new one.
ALTER TABLE workspaces ALTER COLUMN history_tokens SET DEFAULT 2147483647;
-- First the versions: a change of the columns that differs from them would be published as a version.
UPDATE agent_versions SET history_tokens = 2147483647 WHERE history_tokens = 24000;
UPDATE workspaces SET history_tokens = 2147483647 WHERE history_tokens = 24000;
