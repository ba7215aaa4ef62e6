-- +goose Up
-- A person's account for a remote app. owner is a user, or '' for an account that everybody in the workspace
-- uses. record has the tokens, encrypted.
CREATE TABLE accounts (
    id         TEXT PRIMARY KEY,
    workspace  TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    app        TEXT NOT NULL,
    name       TEXT NOT NULL,
    issuer     TEXT NOT NULL,
    state      TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    is_default BIGINT NOT NULL,
    record     TEXT NOT NULL,
    linked_at  BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    UNIQUE (workspace, owner, app, name)
);

-- The clients that authorization servers registered for this server, by what they were registered for.
CREATE TABLE account_clients (
    workspace    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app          TEXT NOT NULL,
    issuer       TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    record       TEXT NOT NULL,
    PRIMARY KEY (workspace, app, issuer, redirect_uri)
);

-- Accounts that were unlinked, and whose tokens are still to be revoked at their authorization servers.
CREATE TABLE account_revocations (
    id          TEXT PRIMARY KEY,
    record      TEXT NOT NULL,
    attempts    BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    unlinked_at BIGINT NOT NULL
);
CREATE INDEX account_revocations_by_due ON account_revocations (due_at);

-- The lists that an app with accounts returned to the account that it is published from.
CREATE TABLE account_lists (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app       TEXT NOT NULL,
    account   TEXT NOT NULL,
    record    TEXT NOT NULL,
    PRIMARY KEY (workspace, app)
);

-- Whether calls with the key use the accounts of its user.
ALTER TABLE api_keys ADD COLUMN accounts BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE api_keys DROP COLUMN accounts;
DROP TABLE account_lists;
DROP TABLE account_revocations;
DROP TABLE account_clients;
DROP TABLE accounts;
