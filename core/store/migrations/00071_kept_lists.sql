-- +goose Up
-- The lists of an app that may be asleep, and the hash of everything that determines them, so that a server knows them when it starts.
CREATE TABLE kept_lists (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app       TEXT NOT NULL,
    sum       TEXT NOT NULL,
    record    TEXT NOT NULL,
    PRIMARY KEY (workspace, app)
);

-- +goose Down
DROP TABLE kept_lists;
