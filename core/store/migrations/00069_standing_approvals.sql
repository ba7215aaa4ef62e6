-- +goose Up
-- Tools whose calls no longer need approval, as long as their definition is unchanged. There is at most one for a tool.
CREATE TABLE standing_approvals (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app        TEXT NOT NULL,
    tool       TEXT NOT NULL,
    definition TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX standing_approvals_of_tools ON standing_approvals (workspace, tool);

-- +goose Down
DROP TABLE standing_approvals;
