-- +goose Up
-- Who started the login: a user at a linked app, otherwise the network address of a browser or a command line.
ALTER TABLE logins ADD COLUMN client TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE logins DROP COLUMN client;
