-- +goose Up
-- The groups of a user, one per line, as of the last token. Views can be bound to them.
ALTER TABLE users ADD COLUMN provider_groups TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE users DROP COLUMN provider_groups;
