package sessionstoretest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// touchesRecords reads a record, pauses and, where the session is still there, writes it back.
type touchesRecords struct{ process }

func (s touchesRecords) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	for _, t := range batch {
		rec, err := s.Get(ctx, t.ID)
		if err != nil {
			continue
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		if _, err := s.Get(ctx, t.ID); err != nil {
			continue
		}
		if t.LastAccessedAt.After(rec.LastAccessedAt) {
			rec.LastAccessedAt = t.LastAccessedAt
		}
		if err := s.Put(ctx, rec, t.TTL); err != nil {
			return err
		}
	}
	return nil
}

// remembersEnds does not look again at a session whose end it knows, and that has come.
type remembersEnds struct {
	process
	mu   sync.Mutex
	ends map[string]time.Time
}

func (s *remembersEnds) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end, ok := s.ends[id]; ok && !time.Now().Before(end) {
		return sessionstore.Record{}, plugins.ErrNotFound
	}
	rec, err := s.process.Get(ctx, id)
	if _, known := s.ends[id]; err == nil && !known {
		s.ends[id] = rec.ExpiresAt
	}
	return rec, err
}

// keepsUntilEnd answers with what it read until the end that the session then had, unless it is deleted.
type keepsUntilEnd struct {
	process
	mu sync.Mutex
	known
}

func (s *keepsUntilEnd) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec, ok := s.known[id]; ok && time.Now().Before(rec.ExpiresAt) {
		return rec, nil
	}
	rec, err := s.process.Get(ctx, id)
	if err == nil {
		s.known[id] = rec
	}
	return rec, err
}

// ownerCache remembers the owners that it read for a second.
type ownerCache struct {
	process
	mu   sync.Mutex
	read map[string]cached
}

func newOwnerCache(p process) *ownerCache { return &ownerCache{process: p, read: map[string]cached{}} }

func (s *ownerCache) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.read[id]; ok && time.Since(before.at) < time.Second {
		rec.Owner = before.rec.Owner
	} else {
		s.read[id] = cached{rec, time.Now()}
	}
	return rec, nil
}

// replacesByCache answers Get honestly, and compares owners by its cache.
type replacesByCache struct{ *ownerCache }

func (s *replacesByCache) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	_, _ = s.ownerCache.Get(ctx, id)
	return s.process.Get(ctx, id)
}

func (s *replacesByCache) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	known, err := s.ownerCache.Get(ctx, rec.ID)
	if err == nil && known.Owner == owner {
		if now, err := s.process.Get(ctx, rec.ID); err == nil {
			owner = now.Owner
		}
	}
	return s.process.Replace(ctx, rec, ttl, owner)
}

// replacesBehind acknowledges replaces that it makes 100 ms later, unless it is killed.
type replacesBehind struct{ *behind }

func (s *replacesBehind) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	now, err := s.Get(ctx, rec.ID)
	if err != nil || now.Owner != owner {
		return false, err
	}
	s.later(func() { _, _ = s.process.Replace(context.WithoutCancel(ctx), rec, ttl, owner) })
	return true, nil
}

// locks holds a lock on what it writes for a little longer than the call; a process that is killed never
// lets go of it.
type locks struct {
	process
	mu   sync.Mutex
	dead bool
}

func (s *locks) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func (s *locks) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := s.take(ctx, rec.ID); err != nil {
		return err
	}
	time.AfterFunc(20*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead {
			s.locked.Delete(rec.ID)
		}
	})
	return s.process.Put(ctx, rec, ttl)
}

// take waits for the lock.
func (s *locks) take(ctx context.Context, id string) error {
	for {
		if _, held := s.locked.LoadOrStore(id, true); !held {
			return nil
		}
		select {
		case <-ctx.Done():
			return plugins.Unavailable(ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// tidies deletes what it put when it ends in good order.
type tidies struct {
	process
	ids sync.Map
}

func (s *tidies) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.ids.Store(rec.ID, true)
	return s.process.Put(ctx, rec, ttl)
}

func (s *tidies) end() {
	s.ids.Range(func(id, _ any) bool { _ = s.Delete(context.Background(), id.(string)); return true })
}

// replacesWith changes what a replace was asked for, given the record that is there.
func replacesWith(change func(before sessionstore.Record, rec *sessionstore.Record, ttl *time.Duration, owner *string)) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return replaceChanger{p, change} }
}

type replaceChanger struct {
	process
	change func(sessionstore.Record, *sessionstore.Record, *time.Duration, *string)
}

func (s replaceChanger) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if before, err := s.Get(ctx, rec.ID); err == nil {
		s.change(before, &rec, &ttl, &owner)
	}
	return s.process.Replace(ctx, rec, ttl, owner)
}

// replaceHider answers a replace with err, or that the owner is another one, while the backend is away.
type replaceHider struct {
	process
	err error
}

func (s replaceHider) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	replaced, err := s.process.Replace(ctx, rec, ttl, owner)
	if errors.Is(err, plugins.ErrUnavailable) {
		err = s.err
	}
	return replaced, err
}

// replacesLong gives its backend ten seconds for a replace, whatever its caller gives.
type replacesLong struct{ process }

func (s replacesLong) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.process.Replace(ctx, rec, ttl, owner)
}

// leaksSlots has a slot for each call to its backend, and keeps those of calls that were given up.
type leaksSlots struct {
	process
	slots chan struct{}
}

func (s *leaksSlots) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return sessionstore.Record{}, plugins.Unavailable(ctx.Err())
	}
	rec, err := s.process.Get(ctx, id)
	if ctx.Err() == nil {
		<-s.slots
	}
	return rec, err
}

// breaks does not ask its backend for a minute after a call that it did not answer in time.
type breaks struct {
	process
	mu    sync.Mutex
	until time.Time
}

func (s *breaks) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	broken := time.Now().Before(s.until)
	s.mu.Unlock()
	if broken {
		return sessionstore.Record{}, plugins.ErrUnavailable
	}
	rec, err := s.process.Get(ctx, id)
	if errors.Is(err, plugins.ErrUnavailable) {
		s.mu.Lock()
		s.until = time.Now().Add(time.Minute)
		s.mu.Unlock()
	}
	return rec, err
}
