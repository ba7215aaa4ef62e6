-- +goose Up
-- How tools are listed to clients with the key that do not choose: 'full', 'search', or '' to leave it open.
ALTER TABLE api_keys ADD COLUMN surface TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN surface;
