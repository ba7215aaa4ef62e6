-- The schema of the state. Times are milliseconds since 1970, UTC. What nothing is looked up by is kept as one JSON record.

-- +goose Up
-- given_role is a role in the organization that an admin of this server gave; '' leaves it to the identity provider.
-- joined_at is when the user joined the workspace of auth.join, so that it happens once; 0 for not yet.
CREATE TABLE users (
    id           TEXT PRIMARY KEY,
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    email        TEXT NOT NULL,
    display_name TEXT NOT NULL,
    org_role     TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    given_role   TEXT NOT NULL DEFAULT '',
    joined_at    BIGINT NOT NULL DEFAULT 0,
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

-- An API key acts as its user in one workspace; only its hash is stored.
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

-- session is the session at the identity provider that a login belongs to, renewal what is needed to ask the provider
-- about it again, encrypted with the cookie, which is not stored; checked_at is when that was done last.
CREATE TABLE cookies (
    hash        TEXT PRIMARY KEY,
    user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key_print   TEXT NOT NULL,
    expires_at  BIGINT NOT NULL,
    session     TEXT NOT NULL DEFAULT '',
    renewal     TEXT NOT NULL DEFAULT '',
    checked_at  BIGINT NOT NULL DEFAULT 0,
    check_began BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX cookies_by_expiry ON cookies (expires_at);

-- Pending browser logins, for servers that share the database: the browser may return to another one.
CREATE TABLE logins (
    state      TEXT PRIMARY KEY,
    record     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_expiry ON logins (expires_at);

-- Subjects and tokens that an identity provider revoked, and when: what was authenticated before that is no longer
-- accepted. One of subject and token is ''.
CREATE TABLE revocations (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    token      TEXT NOT NULL,
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject, token)
);
CREATE INDEX revocations_by_time ON revocations (revoked_at);

-- Messages of identity providers that count once are remembered until they expire.
CREATE TABLE used_messages (
    id         TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- files is the bundle that an installation needs.
CREATE TABLE installations (
    workspace    TEXT NOT NULL REFERENCES workspaces (id),
    name         TEXT NOT NULL,
    record       TEXT NOT NULL,
    installed_at BIGINT NOT NULL,
    files        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace, name)
);

-- The files of bundles, for servers on one database that do not have them yet: a tar archive, compressed with gzip, in
-- parts. sha256 is that of the archive.
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

-- Pinned definitions of tools, one row for each tool of a version of an app's bundle. definition is the accepted one,
-- offered the change that waits for a decision; '' is none. Pins outlive an uninstall, so that the same version from the
-- same registry cannot come back with other tools.
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

-- Calls that wait for a person. There is one pending request for a call at a time; an approved one is used once.
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

-- A collection is one person's conversations in one workspace.
CREATE TABLE collections (
    id            BIGINT PRIMARY KEY,
    workspace     TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    owner         TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    conversations BIGINT NOT NULL,
    last_number   BIGINT NOT NULL DEFAULT 0,
    UNIQUE (workspace, owner)
);

-- The id of a conversation is conv_ and its key in 16 hexadecimal digits. number is small, and unique in the collection:
-- the search index works with sets of numbers. The indexes of the two orders hold it, so that a search reads no rows.
CREATE TABLE conversations (
    id            BIGINT PRIMARY KEY,
    collection    BIGINT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    title         TEXT NOT NULL,
    metadata      TEXT,
    last_model    TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    preview       TEXT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_usd      DOUBLE PRECISION,
    number        BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX conversations_by_number ON conversations (collection, number);
CREATE INDEX conversations_by_update ON conversations (collection, updated_at, id, number);
CREATE INDEX conversations_by_creation ON conversations (collection, created_at, id, number);

-- The turns of a run are one message: the first begins it, the others continue it.
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
    continues     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (conversation, position)
);

-- Files that people attach to their messages. position is that of the message.
CREATE TABLE attachments (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    position     BIGINT NOT NULL,
    name         TEXT NOT NULL,
    mime_type    TEXT NOT NULL,
    content      BYTEA NOT NULL,
    PRIMARY KEY (conversation, id)
);

-- The words of recent conversations. They are bytes: their order must not depend on a locale.
CREATE TABLE words (
    conversation BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    word         BYTEA NOT NULL,
    collection   BIGINT NOT NULL,
    number       BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (conversation, word)
);
CREATE INDEX words_by_shelf ON words (collection, word, number);

-- The compacted search index: a row for each word and each 65,536 numbers, which is a Roaring bitmap.
CREATE TABLE word_sets (
    collection BIGINT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    word       BYTEA NOT NULL,
    page       BIGINT NOT NULL,
    numbers    BYTEA NOT NULL,
    PRIMARY KEY (collection, word, page)
);

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

-- Which run goes on in a conversation, for servers that share the database.
CREATE TABLE runs (
    conversation BIGINT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    holder       TEXT NOT NULL,
    held_until   BIGINT NOT NULL
);

-- What apps ask people during runs, for servers that share the database: the reply may reach another one.
CREATE TABLE questions (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL,
    owner      TEXT NOT NULL,
    form       TEXT NOT NULL,
    open_until BIGINT NOT NULL,
    reply      TEXT NOT NULL DEFAULT ''
);

-- The counter gives each notice its number in the transaction that writes it, so that numbers have no gaps and are seen
-- in their order.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    n    BIGINT NOT NULL
);
INSERT INTO counters (name, n) VALUES ('notices', 0);

-- The notices that servers on one database send each other. owner is the person that an event is for; '' means everybody
-- in the workspace.
CREATE TABLE notices (
    n         BIGINT PRIMARY KEY,
    origin    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    payload   TEXT NOT NULL,
    made_at   BIGINT NOT NULL,
    owner     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX notices_by_age ON notices (made_at);
