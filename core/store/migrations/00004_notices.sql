-- What servers on one database tell each other. The counter gives each notice its number in the
-- transaction that writes it, so that numbers have no gaps and are seen in their order.

-- +goose Up
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    n    BIGINT NOT NULL
);
INSERT INTO counters (name, n) VALUES ('notices', 0);

CREATE TABLE notices (
    n         BIGINT PRIMARY KEY,
    origin    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    workspace TEXT NOT NULL,
    name      TEXT NOT NULL,
    payload   TEXT NOT NULL,
    made_at   BIGINT NOT NULL
);
CREATE INDEX notices_by_age ON notices (made_at);

-- +goose Down
DROP TABLE notices;
DROP TABLE counters;
