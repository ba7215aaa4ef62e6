-- API keys. A key acts as its user in one workspace; only its hash is stored.

-- +goose Up
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    workspace    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace);
CREATE INDEX api_keys_by_user ON api_keys (user_id);

-- +goose Down
DROP TABLE api_keys;
