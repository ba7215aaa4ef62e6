-- +goose Up
-- The lists that an app last returned to an account.
CREATE TABLE account_own_lists (
    account TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    record  TEXT NOT NULL
);

-- +goose Down
DROP TABLE account_own_lists;
