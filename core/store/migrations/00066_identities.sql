-- +goose Up
-- Users' identities at providers other than the first one, which is in users.
CREATE TABLE identities (
    issuer    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    user_id   TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    linked_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id);

-- The identity that a login was made with; '' is the first one of its user.
ALTER TABLE cookies ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE cookies ADD COLUMN subject TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE cookies DROP COLUMN subject;
ALTER TABLE cookies DROP COLUMN issuer;
DROP TABLE identities;
