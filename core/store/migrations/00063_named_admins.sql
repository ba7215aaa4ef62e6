-- The entry of auth.admins that makes a user an admin of the organization, after the issuer and a space; '' for none.
-- Until now, such users had the role itself, and their email could be unverified. Both are set again at the next token or
-- login.

-- +goose Up
ALTER TABLE users ADD COLUMN admin_by TEXT NOT NULL DEFAULT '';
UPDATE users SET org_role = 'member' WHERE org_role = 'admin' AND issuer <> 'ropewalk:local';
UPDATE users SET email = '' WHERE issuer <> 'ropewalk:local';

-- The bytes that a conversation counts towards its owner's quota.
ALTER TABLE conversations ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE conversations SET bytes = LENGTH(title) + COALESCE(LENGTH(metadata), 0)
    + (SELECT COALESCE(SUM(LENGTH(m.content) + COALESCE(LENGTH(m.blocks), 0) + COALESCE(LENGTH(m.metadata), 0)), 0) FROM messages m WHERE m.conversation = conversations.id)
    + (SELECT COALESCE(SUM(LENGTH(a.content)), 0) FROM attachments a WHERE a.conversation = conversations.id);

-- +goose Down
ALTER TABLE conversations DROP COLUMN bytes;
ALTER TABLE users DROP COLUMN admin_by;
