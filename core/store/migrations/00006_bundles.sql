-- The files of bundles, for servers on one database that do not have them yet: tar, compressed with
-- gzip, in parts. A bundle's name is the sha256 of the tar. files says which an installation needs.

-- +goose Up
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

-- +goose Down
ALTER TABLE installations DROP COLUMN files;
DROP TABLE bundle_parts;
DROP TABLE bundles;
