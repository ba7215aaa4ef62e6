-- A shelf is one person's conversations in one workspace. A conversation's key is the number in its
-- id, conv_<16 hexadecimal digits>. Words are kept as bytes: their order must not hang on a locale.

-- +goose Up
CREATE TABLE shelves (
    id            BIGINT PRIMARY KEY,
    workspace     TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    owner         TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    conversations BIGINT NOT NULL,
    UNIQUE (workspace, owner)
);

CREATE TABLE conversations (
    id            BIGINT PRIMARY KEY,
    shelf         BIGINT NOT NULL REFERENCES shelves (id) ON DELETE CASCADE,
    title         TEXT NOT NULL,
    metadata      TEXT,
    last_model    TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    preview       TEXT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_usd      DOUBLE PRECISION
);
CREATE INDEX conversations_by_update ON conversations (shelf, updated_at, id);
CREATE INDEX conversations_by_creation ON conversations (shelf, created_at, id);

CREATE TABLE messages (
    conversation  BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    position      BIGINT NOT NULL,
    role          TEXT NOT NULL,
    content       TEXT NOT NULL,
    blocks        TEXT,
    metadata      TEXT,
    said_at       BIGINT NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_usd      DOUBLE PRECISION,
    PRIMARY KEY (conversation, position)
);

CREATE TABLE words (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    word         BYTEA NOT NULL,
    shelf        BIGINT NOT NULL,
    PRIMARY KEY (conversation, word)
);
CREATE INDEX words_by_shelf ON words (shelf, word, conversation);

CREATE TABLE usage_records (
    id                 BIGINT PRIMARY KEY,
    workspace          TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id            TEXT NOT NULL,
    conversation       BIGINT,
    model              TEXT NOT NULL,
    used_at            BIGINT NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cache_read_tokens  BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cost_usd           DOUBLE PRECISION,
    llm_ms             BIGINT NOT NULL,
    tool_calls         BIGINT NOT NULL
);
CREATE INDEX usage_by_time ON usage_records (workspace, used_at);

-- +goose Down
DROP TABLE usage_records;
DROP TABLE words;
DROP TABLE messages;
DROP TABLE conversations;
DROP TABLE shelves;
