-- +goose Up
-- Which of several accounts for an app the person has chosen for a conversation.
CREATE TABLE conversation_accounts (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    app          TEXT NOT NULL,
    account      TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation, app)
);
CREATE INDEX conversation_accounts_of_accounts ON conversation_accounts (account);

-- +goose Down
DROP TABLE conversation_accounts;
