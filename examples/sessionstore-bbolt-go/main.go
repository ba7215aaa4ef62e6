// Command sessionstore-bbolt keeps MCP sessions in a bbolt file, which only one process at a time may open.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"go.etcd.io/bbolt"
)

func main() { sessionstore.Serve(&store{}) }

var sessions = []byte("sessions")

type store struct {
	db      *bbolt.DB
	purgeAt time.Time // used only in write transactions, of which there is one at a time
}

// entry is a session with the end of its lifetime.
type entry struct {
	Record  sessionstore.Record
	Expires time.Time
}

// Exclusive declares that the file has one writer, so the server never lets two processes open it.
func (*store) Exclusive() {}

// Durable declares that sessions outlive the process.
func (*store) Durable() {}

type settings struct {
	File string `json:"file"`
}

func (s *store) NewSettings() any { return &settings{} }

func (s *store) Configure(ctx context.Context, c plugins.Config) error {
	set := settings{File: "sessions.db"}
	if err := c.Decode(&set); err != nil {
		return err
	}
	dir, err := c.Directory()
	if err != nil {
		return err
	}
	patience := 5 * time.Second // for the lock
	if deadline, limited := ctx.Deadline(); limited {
		patience = min(patience, time.Until(deadline))
	}
	db, err := bbolt.Open(filepath.Join(dir, set.File), 0o600, &bbolt.Options{Timeout: patience})
	if err != nil {
		return plugins.Unavailable(err)
	}
	db.MaxBatchDelay = 2 * time.Millisecond
	s.db = db
	return plugins.Unavailable(db.Update(func(tx *bbolt.Tx) error {
		all, err := tx.CreateBucketIfNotExists(sessions)
		if err != nil {
			return err
		}
		return s.purge(all)
	}))
}

// purge removes expired sessions from time to time.
func (s *store) purge(all *bbolt.Bucket) error {
	now := time.Now()
	if now.Before(s.purgeAt) {
		return nil
	}
	s.purgeAt = now.Add(time.Minute)
	var over [][]byte
	err := all.ForEach(func(id, raw []byte) error {
		e, err := decode(raw)
		if err == nil && !now.Before(e.Expires) {
			over = append(over, id)
		}
		return err
	})
	for _, id := range over {
		err = errors.Join(err, all.Delete(id))
	}
	return err
}

// Close frees the file for the next process.
func (s *store) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

func (s *store) Put(_ context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.update(func(all *bbolt.Bucket) error {
		return errors.Join(s.purge(all), put(all, entry{rec, time.Now().Add(ttl)}))
	})
}

func (s *store) Get(_ context.Context, id string) (rec sessionstore.Record, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		e, err := get(tx.Bucket(sessions), id)
		rec, rec.ExpiresAt = e.Record, e.Expires
		return err
	})
	return rec, classified(err)
}

func (s *store) Touch(_ context.Context, batch []sessionstore.Touch) error {
	return s.update(func(all *bbolt.Bucket) error {
		for _, touch := range batch {
			e, err := get(all, touch.ID)
			if errors.Is(err, plugins.ErrNotFound) {
				continue
			}
			if touch.LastAccessedAt.After(e.Record.LastAccessedAt) {
				e.Record.LastAccessedAt = touch.LastAccessedAt
			}
			e.Expires = time.Now().Add(touch.TTL)
			if err := errors.Join(err, put(all, e)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *store) Delete(_ context.Context, id string) error {
	return s.update(func(all *bbolt.Bucket) error { return all.Delete([]byte(id)) })
}

// Replace lets a server take over a session from another server, or from its own previous run.
func (s *store) Replace(_ context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (replaced bool, err error) {
	err = s.update(func(all *bbolt.Bucket) error {
		replaced = false // the function may be run again
		e, err := get(all, rec.ID)
		if err != nil || e.Record.Owner != owner {
			return err
		}
		if replaced = true; ttl > 0 {
			e.Expires = time.Now().Add(ttl)
		}
		return put(all, entry{rec, e.Expires})
	})
	return replaced, err
}

// update runs change in a transaction that it shares with concurrent calls.
func (s *store) update(change func(all *bbolt.Bucket) error) error {
	return classified(s.db.Batch(func(tx *bbolt.Tx) error { return change(tx.Bucket(sessions)) }))
}

func classified(err error) error {
	if errors.Is(err, plugins.ErrNotFound) {
		return err
	}
	return plugins.Unavailable(err)
}

func put(all *bbolt.Bucket, e entry) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return all.Put([]byte(e.Record.ID), raw)
}

func get(all *bbolt.Bucket, id string) (entry, error) {
	raw := all.Get([]byte(id))
	if raw == nil {
		return entry{}, plugins.ErrNotFound
	}
	e, err := decode(raw)
	if err == nil && !time.Now().Before(e.Expires) {
		return entry{}, plugins.ErrNotFound
	}
	return e, err
}

func decode(raw []byte) (e entry, err error) {
	err = json.Unmarshal(raw, &e)
	return e, err
}
