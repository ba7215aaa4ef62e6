-- A message that waits for the end of the run of its conversation: the JSON of a core.Message. It is held by the server that will
-- begin its run; once it is not held any more, it is the last message of the conversation, without an answer.

-- +goose Up
CREATE TABLE queued (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    message      TEXT NOT NULL,
    held_until   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE queued;
