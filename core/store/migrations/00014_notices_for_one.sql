-- The person that an event is for; '' means everybody in the workspace.

-- +goose Up
ALTER TABLE notices ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE notices DROP COLUMN owner;
