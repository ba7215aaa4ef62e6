-- +goose Up
-- The organization role of requests with the key: 'admin', or '' for a member's.
ALTER TABLE api_keys ADD COLUMN org_role TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN org_role;
