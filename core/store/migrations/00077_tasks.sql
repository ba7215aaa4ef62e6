-- +goose Up
-- Tool calls that outlive their request. The holder makes the call, or asks the app about its task, and renews
-- held_until. responses holds what the caller has answered to input requests and the holder has not taken yet. A task does
-- not reference a membership, because the admins of an organization may call tools without one.
CREATE TABLE tasks (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    api_key    TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
    tool       TEXT NOT NULL,
    account    TEXT NOT NULL,
    app_task   TEXT NOT NULL,
    status     TEXT NOT NULL,
    message    TEXT NOT NULL,
    payload    TEXT,
    bytes      BIGINT NOT NULL,
    responses  TEXT,
    holder     TEXT NOT NULL,
    held_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX tasks_by_user ON tasks (user_id, created_at);
CREATE INDEX tasks_by_workspace ON tasks (workspace);
CREATE INDEX tasks_by_key ON tasks (api_key);
CREATE INDEX tasks_by_expiry ON tasks (expires_at);

-- +goose Down
DROP TABLE tasks;
