-- Calls that wait for a person. There is one pending request for a call at a time; an approved one is
-- used once.

-- +goose Up
CREATE TABLE approvals (
    id          TEXT PRIMARY KEY,
    workspace   TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    caller      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    record      TEXT NOT NULL,
    state       TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    decided_by  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX approvals_pending ON approvals (workspace, fingerprint) WHERE state = 'pending';
CREATE INDEX approvals_by_workspace ON approvals (workspace, created_at);

-- +goose Down
DROP TABLE approvals;
