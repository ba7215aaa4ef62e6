-- +goose Up
-- group_roles are the workspaces and roles that the groups of a user give (auth.join), as of the last token; by_group marks
-- the memberships that come from there.
ALTER TABLE users ADD COLUMN group_roles TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN by_group BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE members DROP COLUMN by_group;
ALTER TABLE users DROP COLUMN group_roles;
