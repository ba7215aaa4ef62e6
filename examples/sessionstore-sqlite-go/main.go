// Command sessionstore-sqlite keeps MCP sessions in a SQLite file, so they outlive the server.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	_ "modernc.org/sqlite"
)

type store struct{ db *sql.DB }

func main() { sessionstore.Serve(&store{}) }

func (s *store) Configure(ctx context.Context, c plugins.Config) error {
	dir, err := c.Directory()
	if err = errors.Join(err, c.Decode(&struct{}{})); err != nil { // it has no settings
		return err
	}
	s.db, _ = sql.Open("sqlite", dir+"/sessions.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
	s.db.SetMaxOpenConns(1) // SQLite has one writer at a time: calls queue here, each until its deadline
	return s.exec(ctx, `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, record TEXT, accessed INT, expires INT); CREATE INDEX IF NOT EXISTS by_expiry ON sessions (expires);
		CREATE TRIGGER IF NOT EXISTS purge AFTER INSERT ON sessions BEGIN DELETE FROM sessions WHERE expires <= unixepoch('subsec') * 1000; END`)
}

func (s *store) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	raw, _ := json.Marshal(rec)
	return s.exec(ctx, `REPLACE INTO sessions VALUES (?, ?, ?, unixepoch('subsec') * 1000 + ?)`, rec.ID, string(raw), rec.LastAccessedAt.UnixMilli(), ttl.Milliseconds())
}

func (s *store) Get(ctx context.Context, id string) (rec sessionstore.Record, err error) {
	raw, accessed := "", int64(0)
	if err = s.db.QueryRowContext(ctx, `SELECT record, accessed FROM sessions WHERE id = ? AND expires > unixepoch('subsec') * 1000`, id).Scan(&raw, &accessed); errors.Is(err, sql.ErrNoRows) {
		return rec, plugins.ErrNotFound
	}
	err = errors.Join(err, json.Unmarshal([]byte(raw), &rec))
	rec.LastAccessedAt = time.UnixMilli(accessed)
	return rec, plugins.Unavailable(err)
}

func (s *store) Touch(ctx context.Context, batch []sessionstore.Touch) (err error) {
	for i := 0; i < len(batch) && err == nil; i++ {
		err = s.exec(ctx, `UPDATE sessions SET accessed = max(accessed, ?), expires = unixepoch('subsec') * 1000 + ?
			WHERE id = ? AND expires > unixepoch('subsec') * 1000`, batch[i].LastAccessedAt.UnixMilli(), batch[i].TTL.Milliseconds(), batch[i].ID)
	}
	return err
}

func (s *store) Delete(ctx context.Context, id string) error {
	return s.exec(ctx, `DELETE FROM sessions WHERE id = ?`, id)
}

func (s *store) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.db.ExecContext(ctx, query, args...)
	return plugins.Unavailable(err)
}
