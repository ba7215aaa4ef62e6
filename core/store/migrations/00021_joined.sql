-- When a user joined the workspace of auth.join, so that it happens once; 0 for not yet.

-- +goose Up
ALTER TABLE users ADD COLUMN joined_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE users DROP COLUMN joined_at;
