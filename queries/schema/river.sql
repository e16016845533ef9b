-- The columns of River's table that this project's own statements use. River makes the table.
CREATE TYPE river_job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
CREATE TABLE river_job (
    id           bigserial PRIMARY KEY,
    state        river_job_state NOT NULL DEFAULT 'available',
    max_attempts smallint NOT NULL,
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    args         jsonb NOT NULL,
    kind         text NOT NULL,
    queue        text NOT NULL DEFAULT 'default'
);
