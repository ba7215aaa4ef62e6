-- +goose Up
-- Long results, and models' verdicts on tool definitions. kept_results replaces results, in which every result
-- needed a membership, although an organization's admins call tools without one. Servers of the previous version still use
-- results.
CREATE TABLE kept_results (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    api_key    TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
    tool       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content    TEXT NOT NULL,
    characters BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX kept_results_by_user ON kept_results (user_id, expires_at);
CREATE INDEX kept_results_by_member ON kept_results (workspace, user_id);
CREATE INDEX kept_results_by_key ON kept_results (api_key);
CREATE INDEX kept_results_by_expiry ON kept_results (expires_at);
CREATE TABLE tool_verdicts (
    origin     TEXT NOT NULL,
    hash       TEXT NOT NULL,
    model      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    PRIMARY KEY (origin, hash)
);
CREATE INDEX tool_verdicts_by_time ON tool_verdicts (decided_at);

-- +goose Down
DROP TABLE tool_verdicts;
DROP TABLE kept_results;
