-- +goose Up
-- Named subsets of a workspace's tools. definition is the JSON of a core.View.
CREATE TABLE views (
    workspace  TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);

-- The view that the key is bound to, '' for none.
ALTER TABLE api_keys ADD COLUMN view TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN view;
DROP TABLE views;
