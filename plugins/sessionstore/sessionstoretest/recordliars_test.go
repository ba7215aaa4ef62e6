package sessionstoretest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// known is what a liar has seen of each id.
type known map[string]sessionstore.Record

type forgetsIssuer struct{ *memory.Store }

func (s *forgetsIssuer) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	rec.Issuer = ""
	return s.Store.Put(ctx, rec, ttl)
}

type keepsSeconds struct{ *memory.Store }

func (s *keepsSeconds) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	rec.CreatedAt, rec.LastAccessedAt = rec.CreatedAt.Truncate(time.Second), rec.LastAccessedAt.Truncate(time.Second)
	return s.Store.Put(ctx, rec, ttl)
}

type endsAtNUL struct{ *memory.Store }

func (s *endsAtNUL) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	rec.ClientInfo.Name, _, _ = strings.Cut(rec.ClientInfo.Name, "\x00")
	return s.Store.Put(ctx, rec, ttl)
}

type mapsIDs struct {
	*memory.Store
	key func(string) string
}

func firstHalf(id string) string { return id[:min(len(id), 64)] }
func lowerCase(id string) string { return strings.ToLower(id) }

func (s *mapsIDs) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	rec.ID = s.key(rec.ID)
	return s.Store.Put(ctx, rec, ttl)
}

func (s *mapsIDs) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.Store.Get(ctx, s.key(id))
	rec.ID = id
	return rec, err
}

func (s *mapsIDs) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	mapped := make([]sessionstore.Touch, len(batch))
	for i, t := range batch {
		mapped[i] = sessionstore.Touch{ID: s.key(t.ID), LastAccessedAt: t.LastAccessedAt, TTL: t.TTL}
	}
	return s.Store.Touch(ctx, mapped)
}

func (s *mapsIDs) Delete(ctx context.Context, id string) error {
	return s.Store.Delete(ctx, s.key(id))
}

type findsStrangers struct {
	*memory.Store
	mu sync.Mutex
	known
}

func (s *findsStrangers) see(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[id] = sessionstore.Record{}
}

func (s *findsStrangers) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.see(rec.ID)
	return s.Store.Put(ctx, rec, ttl)
}

func (s *findsStrangers) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	for _, t := range batch {
		s.see(t.ID)
	}
	return s.Store.Touch(ctx, batch)
}

func (s *findsStrangers) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	_, seen := s.known[id]
	s.mu.Unlock()
	if !seen {
		return sessionstore.Record{}, nil
	}
	return s.Store.Get(ctx, id)
}

type keepsFirstRecord struct{ *memory.Store }

func (s *keepsFirstRecord) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if first, err := s.Get(ctx, rec.ID); err == nil {
		rec = first
	}
	return s.Store.Put(ctx, rec, ttl)
}

type deletesNothing struct{ *memory.Store }

func (*deletesNothing) Delete(context.Context, string) error { return nil }

type missesWhatIsGone struct{ *memory.Store }

func (s *missesWhatIsGone) Delete(ctx context.Context, id string) error {
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	return s.Store.Delete(ctx, id)
}

type buriesForEver struct {
	*memory.Store
	mu sync.Mutex
	known
}

func (s *buriesForEver) Delete(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[id] = sessionstore.Record{}
	return s.Store.Delete(ctx, id)
}

func (s *buriesForEver) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.mu.Lock()
	_, buried := s.known[rec.ID]
	s.mu.Unlock()
	if buried {
		return nil
	}
	return s.Store.Put(ctx, rec, ttl)
}

type takesEmptyID struct{ *memory.Store }

func (s *takesEmptyID) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if rec.ID == "" {
		return nil
	}
	return s.Store.Put(ctx, rec, ttl)
}

type takesAnyLifetime struct{ *memory.Store }

func (s *takesAnyLifetime) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := s.Store.Put(ctx, rec, ttl); rec.ID == "" || !errors.Is(err, plugins.ErrInvalid) {
		return err
	}
	return nil
}

type sleepsThroughDeadlines struct{ *memory.Store }

func (s *sleepsThroughDeadlines) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if ctx.Err() != nil {
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
	}
	return s.Store.Get(ctx, id)
}
