-- Subjects and tokens that an identity provider revoked, and when: what was authenticated before that is
-- no longer accepted. One of subject and token is ''.

-- +goose Up
CREATE TABLE revocations (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    token      TEXT NOT NULL,
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject, token)
);
CREATE INDEX revocations_by_time ON revocations (revoked_at);

-- +goose Down
DROP TABLE revocations;
