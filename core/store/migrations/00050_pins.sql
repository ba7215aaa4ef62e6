-- Pinned definitions of tools, one row for each tool of a version of an app's bundle. definition is the
-- accepted one, offered the change that waits for a decision; '' is none. Pins outlive an uninstall, so
-- that the same version from the same registry cannot come back with other tools.

-- +goose Up
CREATE TABLE pins (
    workspace    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app          TEXT NOT NULL,
    bundle       TEXT NOT NULL,
    version      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    definition   TEXT NOT NULL,
    offered      TEXT NOT NULL DEFAULT '',
    renamed_from TEXT NOT NULL DEFAULT '',
    refused      BIGINT NOT NULL DEFAULT 0,
    changed_at   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, app, bundle, version, tool)
);

-- +goose Down
DROP TABLE pins;
