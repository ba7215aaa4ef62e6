-- The session at the identity provider that a login belongs to, what is needed to ask the provider about it
-- again (encrypted with the cookie, which is not stored), and when that was done last. Messages of providers
-- that count once are remembered until they expire.

-- +goose Up
ALTER TABLE cookies ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE cookies ADD COLUMN renewal TEXT NOT NULL DEFAULT '';
ALTER TABLE cookies ADD COLUMN checked_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cookies ADD COLUMN check_began BIGINT NOT NULL DEFAULT 0;
CREATE TABLE used_messages (
    id         TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE used_messages;
ALTER TABLE cookies DROP COLUMN check_began;
ALTER TABLE cookies DROP COLUMN checked_at;
ALTER TABLE cookies DROP COLUMN renewal;
ALTER TABLE cookies DROP COLUMN session;
