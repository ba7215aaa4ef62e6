-- A collection is one person's conversations in one workspace; word_sets is the compacted search index.

-- +goose Up
ALTER TABLE shelves RENAME TO collections;
ALTER TABLE collections RENAME COLUMN numbered TO last_number;
ALTER TABLE conversations RENAME COLUMN shelf TO collection;
ALTER TABLE words RENAME COLUMN shelf TO collection;
ALTER TABLE packed_words RENAME TO word_sets;
ALTER TABLE word_sets RENAME COLUMN shelf TO collection;

-- +goose Down
ALTER TABLE word_sets RENAME COLUMN collection TO shelf;
ALTER TABLE word_sets RENAME TO packed_words;
ALTER TABLE words RENAME COLUMN collection TO shelf;
ALTER TABLE conversations RENAME COLUMN collection TO shelf;
ALTER TABLE collections RENAME COLUMN last_number TO numbered;
ALTER TABLE collections RENAME TO shelves;
