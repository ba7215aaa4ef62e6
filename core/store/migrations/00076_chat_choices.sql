-- The apps that a conversation does not use, as a JSON list of names, and what a workspace's admins tell every model there.

-- +goose Up
ALTER TABLE conversations ADD COLUMN disabled_apps TEXT;
ALTER TABLE workspaces ADD COLUMN instructions TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN instructions;
ALTER TABLE conversations DROP COLUMN disabled_apps;
