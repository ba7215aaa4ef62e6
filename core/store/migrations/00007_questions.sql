-- What apps ask people in runs that go on, for servers that share the database: the reply may reach
-- another one than the one that asks.

-- +goose Up
CREATE TABLE questions (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL,
    owner      TEXT NOT NULL,
    form       TEXT NOT NULL,
    open_until BIGINT NOT NULL,
    reply      TEXT NOT NULL DEFAULT ''
);

-- +goose Down
DROP TABLE questions;
