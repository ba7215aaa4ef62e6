-- The orders of a list tell the numbers, too: a search goes through them without the rows.

-- +goose Up
DROP INDEX conversations_by_update;
DROP INDEX conversations_by_creation;
CREATE INDEX conversations_by_update ON conversations (shelf, updated_at, id, number);
CREATE INDEX conversations_by_creation ON conversations (shelf, created_at, id, number);

-- +goose Down
DROP INDEX conversations_by_update;
DROP INDEX conversations_by_creation;
CREATE INDEX conversations_by_update ON conversations (shelf, updated_at, id);
CREATE INDEX conversations_by_creation ON conversations (shelf, created_at, id);
