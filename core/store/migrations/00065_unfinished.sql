-- The content so far of the turn that a run is in. A killed server leaves it behind.

-- +goose Up
CREATE TABLE unfinished (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    content      TEXT NOT NULL,
    blocks       TEXT,
    metadata     TEXT,
    said_at      BIGINT NOT NULL,
    continues    BIGINT NOT NULL
);

-- +goose Down
DROP TABLE unfinished;
