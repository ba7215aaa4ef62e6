-- The turns of a run are one message: the first begins it, the others continue it. Before, each counted
-- as a message of its own.

-- +goose Up
ALTER TABLE messages ADD COLUMN continues BIGINT NOT NULL DEFAULT 0;
UPDATE messages SET continues = 1 WHERE role = 'assistant' AND EXISTS (
    SELECT 1 FROM messages p WHERE p.conversation = messages.conversation AND p.position = messages.position - 1 AND p.role = 'assistant');
UPDATE conversations SET message_count = message_count - (
    SELECT COUNT(*) FROM messages m WHERE m.conversation = conversations.id AND m.continues = 1);

-- +goose Down
UPDATE conversations SET message_count = message_count + (
    SELECT COUNT(*) FROM messages m WHERE m.conversation = conversations.id AND m.continues = 1);
ALTER TABLE messages DROP COLUMN continues;
