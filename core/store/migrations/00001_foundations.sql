-- Times are milliseconds since 1970, UTC. What is not looked up by is kept as one JSON record.

-- +goose Up
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

-- +goose Down
DROP TABLE settings;
DROP TABLE cookies;
DROP TABLE installations;
DROP TABLE members;
DROP TABLE workspaces;
DROP TABLE users;
