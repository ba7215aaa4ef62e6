-- Files that people attach to their messages. position is that of the message.

-- +goose Up
CREATE TABLE attachments (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    position     BIGINT NOT NULL,
    name         TEXT NOT NULL,
    mime_type    TEXT NOT NULL,
    content      BYTEA NOT NULL,
    PRIMARY KEY (conversation, id)
);

-- +goose Down
DROP TABLE attachments;
