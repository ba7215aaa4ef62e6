package sessionstoretest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// edgeLies are wrong about values at the edge of what checks of their own already look at.
func edgeLies() []lie {
	const put, touched, replaced = "a put with a lifetime that is not positive is invalid", "a batch with a lifetime that is not positive is invalid and does nothing", "a replace that is not valid is invalid"
	return []lie{
		{"takes a lifetime of a little under zero", put, func(p process) sessionstore.Store { return takesTinyNegative{p, true} }},
		{"takes a touch of a little under zero", touched, func(p process) sessionstore.Store { return takesTinyNegative{p, false} }},
		{"takes a replace of a little under zero for one without a lifetime", replaced, replacesWith(func(_ sessionstore.Record, _ *sessionstore.Record, ttl *time.Duration, _ *string) {
			*ttl = ttl.Truncate(time.Millisecond)
		})},
	}
}

// meetingLies are wrong when two calls meet at one session, and about what is far from the usual.
func meetingLies() []lie {
	const replacedLater = "a replace does not undo a put of the same moment"
	lies := []lie{
		{"takes a row that another put makes at the moment for an error", "puts of one new id at once are all taken", func(p process) sessionstore.Store {
			return &duplicateKey{process: p, inserting: map[string]bool{}}
		}},
		{"locks the sessions of a batch in its order", "batches of the same sessions in another order may come at once", func(p process) sessionstore.Store {
			return &deadlocks{process: p, held: map[string]chan struct{}{}}
		}},
		{"deletes what it did not find", "a get does not undo a put of the same moment", func(p process) sessionstore.Store { return lazyExpiry{p} }},
		{"writes a replace over whatever came since it looked", replacedLater, func(p process) sessionstore.Store { return looseReplace{p} }},
		{"writes a replace although it was deleted since it looked", "a replace does not bring back a session deleted at the same moment", func(p process) sessionstore.Store { return looseReplace{p} }},
		{"writes back the lifetime that a replace read", "a replace without a lifetime does not undo the one of a touch of the same moment", func(p process) sessionstore.Store { return staleTTLReplace{p} }},
		{"starts the lifetime anew for a replace that writes nothing", "a replace that writes nothing leaves the lifetime as it is", func(p process) sessionstore.Store { return prolongsOnRefusal{p} }},
		{"takes a replace under a millisecond for one without a lifetime", "a replace with a lifetime of less than a millisecond has it", replacesWith(func(_ sessionstore.Record, _ *sessionstore.Record, ttl *time.Duration, _ *string) {
			*ttl = ttl.Truncate(time.Millisecond)
		})},
		{"ends lifetimes by timers of its process", "a lifetime ends whose process was killed", func(p process) sessionstore.Store {
			return &inProcessEnds{process: p, timers: map[string]*time.Timer{}}
		}},
	}
	return slices.Concat(lies, farTimeLies(), endedLies(), emptyIDLies())
}

func farTimeLies() []lie {
	const far = "times far from now come back, and none comes back as none"
	got := func(change func(*sessionstore.Record)) func(process) sessionstore.Store {
		return func(p process) sessionstore.Store { return getChanger{p, change} }
	}
	seconds32 := func(at time.Time) time.Time {
		return time.Unix(int64(int32(at.Unix())), int64(at.Nanosecond())) //nolint:gosec // the lie
	}
	return []lie{
		{"has 1970 for no time", far, got(func(r *sessionstore.Record) {
			if r.CreatedAt.IsZero() {
				r.CreatedAt = time.Unix(0, 0)
			}
		})},
		{"has no time for 1970", far, got(func(r *sessionstore.Record) {
			if r.CreatedAt.Equal(time.Unix(0, 0)) {
				r.CreatedAt = time.Time{}
			}
		})},
		{"fills a last access that is missing", far, changesRecords(func(r *sessionstore.Record) {
			if r.LastAccessedAt.IsZero() {
				r.LastAccessedAt = time.Now()
			}
		})},
		{"counts seconds in 32 bits", far, changesRecords(func(r *sessionstore.Record) {
			if !r.CreatedAt.IsZero() {
				r.CreatedAt = seconds32(r.CreatedAt)
			}
		})},
		{"counts seconds of touches in 32 bits", far, touchesWith(func(_ int, _ []sessionstore.Touch, t *sessionstore.Touch) {
			t.LastAccessedAt = seconds32(t.LastAccessedAt)
		})},
		{"cuts times before 1970 to seconds", far, changesRecords(func(r *sessionstore.Record) {
			if r.CreatedAt.Unix() < 0 {
				r.CreatedAt = r.CreatedAt.Truncate(time.Second)
			}
		})},
	}
}

func endedLies() []lie {
	const ended = "a lifetime that another put or a delete has ended ends nothing"
	return []lie{
		{"does not stop the clock of a session that is deleted", ended, func(p process) sessionstore.Store { return newTimers(p, false, true) }},
		{"does not stop the clock of a session that is put again", ended, func(p process) sessionstore.Store { return newTimers(p, true, false) }},
		{"keeps the sooner end of two puts", ended, func(p process) sessionstore.Store { return soonerEnd{p} }},
	}
}

func emptyIDLies() []lie {
	const resembles = "a text that resembles an id finds, touches and deletes no session"
	return []lie{
		{"refuses to look for an empty id", resembles, func(p process) sessionstore.Store { return emptyGet{p} }},
		{"refuses a batch for an empty id", resembles, func(p process) sessionstore.Store { return emptyTouch{p} }},
		{"refuses to delete an empty id", resembles, func(p process) sessionstore.Store { return emptyDelete{p} }},
	}
}

type getChanger struct {
	process
	change func(*sessionstore.Record)
}

func (s getChanger) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err == nil {
		s.change(&rec)
	}
	return rec, err
}

type timers struct {
	process
	keepOnPut, keepOnDelete bool
	mu                      sync.Mutex
	by                      map[string]*time.Timer
}

func newTimers(p process, put, del bool) *timers {
	return &timers{process: p, keepOnPut: put, keepOnDelete: del, by: map[string]*time.Timer{}}
}

func (s *timers) set(id string, ttl time.Duration, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.by[id]; t != nil && !keep {
		t.Stop()
	}
	delete(s.by, id)
	if ttl > 0 && ttl < time.Hour {
		s.by[id] = time.AfterFunc(ttl, func() { _ = s.Delete(context.Background(), id) })
	}
}

func (s *timers) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	err := s.process.Put(ctx, rec, ttl)
	if err == nil {
		s.set(rec.ID, ttl, s.keepOnPut)
	}
	return err
}

func (s *timers) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	err := s.process.Touch(ctx, batch)
	if err == nil {
		for _, t := range batch {
			if _, err := s.Get(ctx, t.ID); err == nil {
				s.set(t.ID, t.TTL, false)
			}
		}
	}
	return err
}

func (s *timers) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	ok, err := s.process.Replace(ctx, rec, ttl, owner)
	if ok && ttl > 0 {
		s.set(rec.ID, ttl, false)
	}
	return ok, err
}

func (s *timers) Delete(ctx context.Context, id string) error {
	err := s.process.Delete(ctx, id)
	if err == nil {
		s.set(id, 0, s.keepOnDelete)
	}
	return err
}

type soonerEnd struct{ process }

func (s soonerEnd) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if before, err := s.Get(ctx, rec.ID); err == nil && ttl > 0 {
		ttl = min(ttl, time.Until(before.ExpiresAt))
	}
	return s.process.Put(ctx, rec, ttl)
}

type prolongsOnRefusal struct{ process }

func (s prolongsOnRefusal) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	ok, err := s.process.Replace(ctx, rec, ttl, owner)
	if err == nil && !ok && ttl > 0 {
		_ = s.Touch(ctx, []sessionstore.Touch{{ID: rec.ID, TTL: ttl}})
	}
	return ok, err
}

type lazyExpiry struct{ process }

func (s lazyExpiry) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if errors.Is(err, plugins.ErrNotFound) {
		time.Sleep(time.Microsecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
		_ = s.Delete(ctx, id)
	}
	return rec, err
}

// looseReplace compares, then writes whatever came in between.
type looseReplace struct{ process }

func (s looseReplace) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	now, err := s.Get(ctx, rec.ID)
	if err != nil || now.Owner != owner {
		return false, err
	}
	time.Sleep(time.Microsecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
	return true, s.Put(ctx, rec, ttl)
}

type staleTTLReplace struct{ process }

func (s staleTTLReplace) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil {
		return false, err
	}
	if ttl > 0 {
		return s.process.Replace(ctx, rec, ttl, owner)
	}
	now, err := s.Get(ctx, rec.ID)
	if err != nil {
		return false, err
	}
	time.Sleep(time.Microsecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
	return s.process.Replace(ctx, rec, time.Until(now.ExpiresAt), owner)
}

type deadlocks struct {
	process
	m    sync.Mutex
	held map[string]chan struct{}
}

func (s *deadlocks) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	mine := map[string]bool{}
	defer func() {
		s.m.Lock()
		defer s.m.Unlock()
		for id := range mine {
			close(s.held[id])
			delete(s.held, id)
		}
	}()
	for _, t := range batch {
		for !mine[t.ID] {
			s.m.Lock()
			other := s.held[t.ID]
			if other == nil {
				s.held[t.ID] = make(chan struct{})
				mine[t.ID] = true
			}
			s.m.Unlock()
			if other != nil {
				select {
				case <-other:
				case <-time.After(time.Second):
					return errors.New("deadlock detected")
				}
			}
		}
		time.Sleep(time.Microsecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
	}
	return s.process.Touch(ctx, batch)
}

type duplicateKey struct {
	process
	m         sync.Mutex
	inserting map[string]bool
}

func (s *duplicateKey) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if _, err := s.Get(ctx, rec.ID); errors.Is(err, plugins.ErrNotFound) {
		s.m.Lock()
		if s.inserting[rec.ID] {
			s.m.Unlock()
			return errors.New("duplicate key value violates unique constraint")
		}
		s.inserting[rec.ID] = true
		s.m.Unlock()
		time.Sleep(time.Microsecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
		defer func() {
			s.m.Lock()
			defer s.m.Unlock()
			delete(s.inserting, rec.ID)
		}()
	}
	return s.process.Put(ctx, rec, ttl)
}

type emptyGet struct{ process }

func (s emptyGet) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if id == "" {
		return sessionstore.Record{}, plugins.ErrInvalid
	}
	return s.process.Get(ctx, id)
}

type emptyTouch struct{ process }

func (s emptyTouch) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	for _, t := range batch {
		if t.ID == "" {
			return plugins.ErrInvalid
		}
	}
	return s.process.Touch(ctx, batch)
}

type emptyDelete struct{ process }

func (s emptyDelete) Delete(ctx context.Context, id string) error {
	if id == "" {
		return plugins.ErrInvalid
	}
	return s.process.Delete(ctx, id)
}

// inProcessEnds keeps sessions without an end in its backend and deletes them by timers of its own.
type inProcessEnds struct {
	process
	mu     sync.Mutex
	timers map[string]*time.Timer
}

func (s *inProcessEnds) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.timers {
		t.Stop()
	}
}

func (s *inProcessEnds) set(id string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.timers[id]; t != nil {
		t.Stop()
	}
	s.timers[id] = time.AfterFunc(ttl, func() { _ = s.Delete(context.Background(), id) })
}

func (s *inProcessEnds) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if ttl <= 0 || rec.ID == "" {
		return plugins.ErrInvalid
	}
	err := s.process.Put(ctx, rec, 10000*time.Hour)
	if err == nil {
		s.set(rec.ID, ttl)
	}
	return err
}

func (s *inProcessEnds) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	long := slices.Clone(batch)
	for i := range long {
		long[i].TTL = 10000 * time.Hour
	}
	err := s.process.Touch(ctx, long)
	if err == nil {
		for _, t := range batch {
			if _, err := s.process.Get(ctx, t.ID); err == nil {
				s.set(t.ID, t.TTL)
			}
		}
	}
	return err
}

func (s *inProcessEnds) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if ttl < 0 {
		return false, plugins.ErrInvalid
	}
	ok, err := s.process.Replace(ctx, rec, 0, owner)
	if ok && ttl > 0 {
		s.set(rec.ID, ttl)
	}
	return ok, err
}

func (s *inProcessEnds) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	rec.ExpiresAt = time.Time{}
	return rec, err
}

type takesTinyNegative struct {
	process
	puts bool
}

func tinyNegative(ttl time.Duration) bool { return ttl < 0 && ttl > -time.Millisecond }

func (s takesTinyNegative) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if s.puts && tinyNegative(ttl) {
		ttl = time.Millisecond
	}
	return s.process.Put(ctx, rec, ttl)
}

func (s takesTinyNegative) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	batch = slices.Clone(batch)
	for i := range batch {
		if !s.puts && tinyNegative(batch[i].TTL) {
			batch[i].TTL = time.Millisecond
		}
	}
	return s.process.Touch(ctx, batch)
}
