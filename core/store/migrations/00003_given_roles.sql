-- A role in the organization that an admin of this server gave; '' leaves it to the identity provider.

-- +goose Up
ALTER TABLE users ADD COLUMN given_role TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE users DROP COLUMN given_role;
