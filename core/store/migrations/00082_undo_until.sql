-- +goose Up
-- The time until which the uninstalled app can be restored; 0 while it is installed.
ALTER TABLE installations ADD COLUMN undo_until BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE installations DROP COLUMN undo_until;
