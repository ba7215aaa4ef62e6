-- +goose Up
-- decision is who decided on a call and why, as JSON.
ALTER TABLE approvals ADD COLUMN decision TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN decided_at BIGINT NOT NULL DEFAULT 0;
UPDATE approvals SET decided_at = created_at WHERE decided_by <> '';
CREATE INDEX approvals_by_decision ON approvals (workspace, decided_at);
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE state IN ('pending', 'approved');

-- +goose Down
DROP INDEX approvals_by_expiry;
DROP INDEX approvals_by_decision;
ALTER TABLE approvals DROP COLUMN decided_at;
ALTER TABLE approvals DROP COLUMN decision;
