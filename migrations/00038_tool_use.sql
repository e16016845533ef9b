-- +goose Up

-- The calls of tools are summed by days, too: turns are the calls, and completed those without an
-- error. Days that are summed already are summed again.
ALTER TABLE usage_days DROP CONSTRAINT usage_days_kind_check;
ALTER TABLE usage_days ADD CONSTRAINT usage_days_kind_check CHECK (kind IN ('model', 'agent', 'key', 'user', 'tool'));
DELETE FROM usage_days;
DELETE FROM usage_summed;
