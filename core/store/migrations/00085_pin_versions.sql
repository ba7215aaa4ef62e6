-- +goose Up
-- The versions of apps that have pins, without the account (acc_ and 26 characters) that ends some versions in pins.
-- bytes counts the definitions that were stored, including those that were replaced.
CREATE TABLE pin_versions (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    app       TEXT NOT NULL,
    bundle    TEXT NOT NULL,
    version   TEXT NOT NULL,
    bytes     BIGINT NOT NULL,
    added_at  BIGINT NOT NULL,
    PRIMARY KEY (workspace, app, bundle, version)
);
INSERT INTO pin_versions (workspace, app, bundle, version, bytes, added_at)
SELECT workspace, app, bundle, version, CAST(SUM(size) AS BIGINT), 0 FROM (
    SELECT workspace, app, bundle, LENGTH(definition) + LENGTH(offered) AS size,
        CASE WHEN LENGTH(version) > 30 AND SUBSTR(version, LENGTH(version) - 29, 4) = 'acc_'
            THEN SUBSTR(version, 1, LENGTH(version) - 31) ELSE version END AS version
    FROM pins) sizes
GROUP BY workspace, app, bundle, version;

-- +goose Down
DROP TABLE pin_versions;
