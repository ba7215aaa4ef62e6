-- Which run goes on in a conversation, for servers that share the database.

-- +goose Up
CREATE TABLE runs (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    holder       TEXT NOT NULL,
    held_until   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE runs;
