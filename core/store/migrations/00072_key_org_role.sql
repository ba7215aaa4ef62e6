-- +goose Up
-- The role in the organization of requests with the key: 'admin', or '' for that of a member.
ALTER TABLE api_keys ADD COLUMN org_role TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN org_role;
