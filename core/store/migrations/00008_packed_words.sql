-- Conversations have small numbers in their shelf, never given twice. Sets of them are kept in few
-- bytes: packed_words has a row for each word and each 65,536 numbers, a Roaring bitmap.

-- +goose Up
ALTER TABLE shelves ADD COLUMN numbered BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
UPDATE conversations SET number = counted.n
FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY shelf ORDER BY created_at, id) AS n FROM conversations) AS counted
WHERE counted.id = conversations.id;
UPDATE shelves SET numbered = (SELECT COUNT(*) FROM conversations WHERE conversations.shelf = shelves.id);
CREATE UNIQUE INDEX conversations_by_number ON conversations (shelf, number);

DROP INDEX words_by_shelf;
ALTER TABLE words ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
UPDATE words SET number = (SELECT number FROM conversations WHERE conversations.id = words.conversation);
CREATE INDEX words_by_shelf ON words (shelf, word, number);

CREATE TABLE packed_words (
    shelf   BIGINT NOT NULL REFERENCES shelves (id) ON DELETE CASCADE,
    word    BYTEA NOT NULL,
    page    BIGINT NOT NULL,
    numbers BYTEA NOT NULL,
    PRIMARY KEY (shelf, word, page)
);

-- +goose Down
-- What was packed is not found any more.
DROP TABLE packed_words;
DROP INDEX words_by_shelf;
ALTER TABLE words DROP COLUMN number;
CREATE INDEX words_by_shelf ON words (shelf, word, conversation);
DROP INDEX conversations_by_number;
ALTER TABLE conversations DROP COLUMN number;
ALTER TABLE shelves DROP COLUMN numbered;
