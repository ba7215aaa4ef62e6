package sessionstoretest

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

const (
	long  = 10 * time.Minute       // a lifetime that no check outlives
	short = 300 * time.Millisecond // a lifetime that a check waits for
	slack = time.Second            // how late a session may be noticed to be gone
)

func newID() string { return rand.Text() }

// opened is a moment in the past, in whole seconds, that checks count from.
func opened() time.Time { return time.Now().Add(-time.Hour).UTC().Truncate(time.Second) }

func session(id string) sessionstore.Record {
	at := opened()
	return sessionstore.Record{
		ID:              id,
		Subject:         "user_01",
		Issuer:          "https://issuer.example",
		WorkspaceID:     "ws_kit",
		ProtocolVersion: "2025-11-25",
		ClientInfo:      sessionstore.ClientInfo{Name: "kit", Version: "1.0.0"},
		CreatedAt:       at,
		LastAccessedAt:  at.Add(time.Second),
	}
}

// put puts a session of a new id.
func put(ctx context.Context, s sessionstore.Store, ttl time.Duration) (sessionstore.Record, error) {
	rec := session(newID())
	return rec, putAs(ctx, s, rec, ttl)
}

func putAs(ctx context.Context, s sessionstore.Store, rec sessionstore.Record, ttl time.Duration) error {
	if err := s.Put(ctx, rec, ttl); err != nil {
		return kit.Failf("Put failed: %w", err)
	}
	return nil
}

func touch(ctx context.Context, s sessionstore.Store, batch ...sessionstore.Touch) error {
	if err := s.Touch(ctx, batch); err != nil {
		return kit.Failf("Touch failed: %w", err)
	}
	return nil
}

// holds asks for a session that must be there and be the one that was put; it looks at the subject
// alone, so that a check fails for what it is about and for nothing else.
func holds(ctx context.Context, s sessionstore.Store, want sessionstore.Record) error {
	got, err := s.Get(ctx, want.ID)
	if err != nil {
		return kit.Failf("Get must find the session; it returned the error %q", err)
	}
	if got.Subject != want.Subject {
		return kit.Failf("Get of the id %q must return the record of the subject %q; it returned the one of %q", want.ID, want.Subject, got.Subject)
	}
	return nil
}

// exists asks for a session that must be there, whatever it holds.
func exists(ctx context.Context, s sessionstore.Store, id, when string) error {
	if _, err := s.Get(ctx, id); err != nil {
		return kit.Failf("Get must find the session %s; it returned the error %q", when, err)
	}
	return nil
}

// gone asks for a session that must not be there.
func gone(ctx context.Context, s sessionstore.Store, id, when string) error {
	switch _, err := s.Get(ctx, id); {
	case err == nil:
		return kit.Failf("Get must return plugins.ErrNotFound (NOT_FOUND) %s; it returned a session", when)
	case !errors.Is(err, plugins.ErrNotFound):
		return kit.Failf("Get must return plugins.ErrNotFound (NOT_FOUND) %s; it returned the error %q", when, err)
	}
	return nil
}

// goneSoon waits for a session to end.
func goneSoon(ctx context.Context, s sessionstore.Store, id, when string) error {
	last := gone(ctx, s, id, when)
	for until := time.Now().Add(slack); last != nil && time.Now().Before(until); last = gone(ctx, s, id, when) {
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return last
}

// normal is rec with its times in UTC and whole milliseconds, so that == compares what must be equal.
func normal(rec sessionstore.Record) sessionstore.Record {
	rec.ExpiresAt = time.Time{}
	rec.CreatedAt = rec.CreatedAt.UTC().Truncate(time.Millisecond)
	rec.LastAccessedAt = rec.LastAccessedAt.UTC().Truncate(time.Millisecond)
	return rec
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
