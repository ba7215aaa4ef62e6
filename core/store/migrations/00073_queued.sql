-- A message that waits until its conversation's current run ends: the JSON of a core.Message. The server that will run it holds
-- it until held_until. If the hold lapses, the message becomes the last in the conversation and stays unanswered.

-- +goose Up
CREATE TABLE queued (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    message      TEXT NOT NULL,
    held_until   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE queued;
