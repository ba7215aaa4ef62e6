-- The twenty steps that the baseline of schema 62 replaced, in the order in which servers applied them.

-- 00001_foundations
CREATE TABLE users (
    id           TEXT PRIMARY KEY,
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    email        TEXT NOT NULL,
    display_name TEXT NOT NULL,
    org_role     TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    UNIQUE (issuer, subject)
);

CREATE TABLE workspaces (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    personal_of TEXT UNIQUE REFERENCES users (id),
    created_at  BIGINT NOT NULL
);

CREATE TABLE members (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role      TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    PRIMARY KEY (workspace, user_id)
);
CREATE INDEX members_by_user ON members (user_id);

CREATE TABLE installations (
    workspace    TEXT NOT NULL REFERENCES workspaces (id),
    name         TEXT NOT NULL,
    record       TEXT NOT NULL,
    installed_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name)
);

CREATE TABLE cookies (
    hash       TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key_print  TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX cookies_by_expiry ON cookies (expires_at);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- 00002_conversations
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

-- 00003_given_roles
ALTER TABLE users ADD COLUMN given_role TEXT NOT NULL DEFAULT '';

-- 00004_notices
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    n    BIGINT NOT NULL
);
INSERT INTO counters (name, n) VALUES ('notices', 0);

CREATE TABLE notices (
    n         BIGINT PRIMARY KEY,
    origin    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    payload   TEXT NOT NULL,
    made_at   BIGINT NOT NULL
);
CREATE INDEX notices_by_age ON notices (made_at);

-- 00005_runs
CREATE TABLE runs (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    holder       TEXT NOT NULL,
    held_until   BIGINT NOT NULL
);

-- 00006_bundles
CREATE TABLE bundles (
    sha256  TEXT PRIMARY KEY,
    kept_at BIGINT NOT NULL
);

CREATE TABLE bundle_parts (
    sha256  TEXT NOT NULL REFERENCES bundles (sha256) ON DELETE CASCADE,
    part    BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (sha256, part)
);

ALTER TABLE installations ADD COLUMN files TEXT NOT NULL DEFAULT '';

-- 00007_questions
CREATE TABLE questions (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL,
    owner      TEXT NOT NULL,
    form       TEXT NOT NULL,
    open_until BIGINT NOT NULL,
    reply      TEXT NOT NULL DEFAULT ''
);

-- 00008_packed_words
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

-- 00009_logins
CREATE TABLE logins (
    state      TEXT PRIMARY KEY,
    record     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_expiry ON logins (expires_at);

-- 00010_orders
DROP INDEX conversations_by_update;
DROP INDEX conversations_by_creation;
CREATE INDEX conversations_by_update ON conversations (shelf, updated_at, id, number);
CREATE INDEX conversations_by_creation ON conversations (shelf, created_at, id, number);

-- 00011_plain_names
ALTER TABLE shelves RENAME TO collections;
ALTER TABLE collections RENAME COLUMN numbered TO last_number;
ALTER TABLE conversations RENAME COLUMN shelf TO collection;
ALTER TABLE words RENAME COLUMN shelf TO collection;
ALTER TABLE packed_words RENAME TO word_sets;
ALTER TABLE word_sets RENAME COLUMN shelf TO collection;

-- 00012_continued_messages
ALTER TABLE messages ADD COLUMN continues BIGINT NOT NULL DEFAULT 0;
UPDATE messages SET continues = 1 WHERE role = 'assistant' AND EXISTS (
    SELECT 1 FROM messages p WHERE p.conversation = messages.conversation AND p.position = messages.position - 1 AND p.role = 'assistant');
UPDATE conversations SET message_count = message_count - (
    SELECT COUNT(*) FROM messages m WHERE m.conversation = conversations.id AND m.continues = 1);

-- 00013_attachments
CREATE TABLE attachments (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    position     BIGINT NOT NULL,
    name         TEXT NOT NULL,
    mime_type    TEXT NOT NULL,
    content      BYTEA NOT NULL,
    PRIMARY KEY (conversation, id)
);

-- 00014_notices_for_one
ALTER TABLE notices ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- 00020_api_keys
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    workspace    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace);
CREATE INDEX api_keys_by_user ON api_keys (user_id);

-- 00021_joined
ALTER TABLE users ADD COLUMN joined_at BIGINT NOT NULL DEFAULT 0;

-- 00050_pins
CREATE TABLE pins (
    workspace    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app          TEXT NOT NULL,
    bundle       TEXT NOT NULL,
    version      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    definition   TEXT NOT NULL,
    offered      TEXT NOT NULL DEFAULT '',
    renamed_from TEXT NOT NULL DEFAULT '',
    refused      BIGINT NOT NULL DEFAULT 0,
    changed_at   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, app, bundle, version, tool)
);

-- 00051_approvals
CREATE TABLE approvals (
    id          TEXT PRIMARY KEY,
    workspace   TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    caller      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    record      TEXT NOT NULL,
    state       TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    decided_by  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX approvals_pending ON approvals (workspace, fingerprint) WHERE state = 'pending';
CREATE INDEX approvals_by_workspace ON approvals (workspace, created_at);

-- 00052_provider_sessions
ALTER TABLE cookies ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE cookies ADD COLUMN renewal TEXT NOT NULL DEFAULT '';
ALTER TABLE cookies ADD COLUMN checked_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cookies ADD COLUMN check_began BIGINT NOT NULL DEFAULT 0;
CREATE TABLE used_messages (
    id         TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

-- 00062_revocations
CREATE TABLE revocations (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    token      TEXT NOT NULL,
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject, token)
);
CREATE INDEX revocations_by_time ON revocations (revoked_at);
