-- Browser logins under way, for servers that share the database: the browser may come back to another.

-- +goose Up
CREATE TABLE logins (
    state      TEXT PRIMARY KEY,
    record     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_expiry ON logins (expires_at);

-- +goose Down
DROP TABLE logins;
