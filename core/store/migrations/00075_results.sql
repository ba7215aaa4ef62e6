-- +goose Up
-- Tool results that were too long for their caller, kept for an hour. A result is deleted with the API key or the membership
-- with which the call was made.
CREATE TABLE results (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    api_key    TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
    tool       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content    TEXT NOT NULL,
    characters BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (workspace, user_id) REFERENCES members (workspace, user_id) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX results_by_user ON results (user_id, expires_at);
CREATE INDEX results_by_member ON results (workspace, user_id);
CREATE INDEX results_by_key ON results (api_key);
CREATE INDEX results_by_expiry ON results (expires_at);

-- +goose Down
DROP TABLE results;
