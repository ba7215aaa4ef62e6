package sessionstoretest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

type livesShort struct{ *memory.Store }

func (s *livesShort) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.Store.Put(ctx, rec, ttl/4)
}

// livesLong forgets the lifetime of what is put for the first time.
type livesLong struct {
	*memory.Store
	mu sync.Mutex
	known
}

func (s *livesLong) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.mu.Lock()
	_, again := s.known[rec.ID]
	s.known[rec.ID] = rec
	s.mu.Unlock()
	if !again && ttl > 0 {
		ttl = time.Hour
	}
	return s.Store.Put(ctx, rec, ttl)
}

// keepsFirstLifetime keeps the ten minutes that this kit puts everything for that it puts again.
type keepsFirstLifetime struct{ *memory.Store }

func (s *keepsFirstLifetime) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if _, err := s.Get(ctx, rec.ID); err == nil {
		ttl = 10 * time.Minute
	}
	return s.Store.Put(ctx, rec, ttl)
}

type stopsAtFirstGap struct{ *memory.Store }

func (s *stopsAtFirstGap) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	gap := slices.IndexFunc(batch, func(t sessionstore.Touch) bool {
		_, err := s.Get(ctx, t.ID)
		return err != nil
	})
	if gap >= 0 {
		batch = batch[:gap]
	}
	return s.Store.Touch(ctx, batch)
}

type takesFiveHundred struct{ *memory.Store }

func (s *takesFiveHundred) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.Store.Touch(ctx, batch[:min(len(batch), 500)])
}

type lastOfBatchWins struct{ *memory.Store }

func (s *lastOfBatchWins) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	last := map[string]sessionstore.Touch{}
	for _, t := range batch {
		last[t.ID] = t
	}
	for _, t := range last {
		if err := s.Store.Touch(ctx, []sessionstore.Touch{t}); err != nil {
			return err
		}
	}
	return nil
}

type refusesNothing struct{ *memory.Store }

func (s *refusesNothing) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if len(batch) == 0 {
		return errors.New("nothing to do")
	}
	return s.Store.Touch(ctx, batch)
}

type skipsBadTouches struct{ *memory.Store }

func (s *skipsBadTouches) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	good := slices.DeleteFunc(slices.Clone(batch), func(t sessionstore.Touch) bool { return t.TTL <= 0 })
	return s.Store.Touch(ctx, good)
}

// readsOneAtATime fails a Get while another one is under way.
type readsOneAtATime struct {
	*memory.Store
	mu sync.Mutex
}

func (s *readsOneAtATime) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if !s.mu.TryLock() {
		return sessionstore.Record{}, errors.New("busy")
	}
	defer s.mu.Unlock()
	time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
	return s.Store.Get(ctx, id)
}

// comparesTooEarly compares times, pauses, and then writes without another look.
type comparesTooEarly struct{ glass }

func (s *comparesTooEarly) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	for _, t := range batch {
		rec, err := s.Get(ctx, t.ID)
		if err != nil {
			continue
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		s.mu.Lock()
		if p := s.pane(t.ID); p.alive(time.Now()) {
			p.expires = time.Now().Add(t.TTL)
			if t.LastAccessedAt.After(rec.LastAccessedAt) {
				p.rec.LastAccessedAt = t.LastAccessedAt
			}
		}
		s.mu.Unlock()
	}
	return nil
}

// looksUpTooEarly looks whether a session exists, pauses, and then writes without another look.
type looksUpTooEarly struct{ glass }

func (s *looksUpTooEarly) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	for _, t := range batch {
		if _, err := s.Get(ctx, t.ID); err != nil {
			continue
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		s.mu.Lock()
		p := s.pane(t.ID)
		p.newest(t.LastAccessedAt)
		p.expires, p.deleted = time.Now().Add(t.TTL), false
		s.mu.Unlock()
	}
	return nil
}
