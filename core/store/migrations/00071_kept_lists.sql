-- +goose Up
-- What an app that may sleep listed, and the hash of what decides that: a server that starts knows its lists.
CREATE TABLE kept_lists (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app       TEXT NOT NULL,
    sum       TEXT NOT NULL,
    record    TEXT NOT NULL,
    PRIMARY KEY (workspace, app)
);

-- +goose Down
DROP TABLE kept_lists;
