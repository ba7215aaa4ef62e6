package sessionstoretest_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// newLies are wrong in the second write, the second entry, the second process or the second call.
func newLies() []lie {
	return slices.Concat(remnantLies(), idLies(), lifetimeLies(), undoingLies(), newReplaceLies(), outageLies(), meetingLies())
}

func remnantLies() []lie {
	const empties, touched, millis = "a field that a put leaves empty is empty", "a put has its own time of the last access, whatever was touched before", "a touch sets times to the millisecond"
	const refused = "sessions of a batch that was refused are as they were, and can be touched again"
	const times, lifetimes = "each session of a batch gets its own time", "each session of a batch gets its own lifetime"
	return []lie{
		{"merges a put into the record before", empties, putsOver(func(before, rec *sessionstore.Record) {
			for _, field := range [][2]*string{{&before.Subject, &rec.Subject}, {&before.Issuer, &rec.Issuer}, {&before.ClientInfo.Name, &rec.ClientInfo.Name}} {
				if *field[1] == "" {
					*field[1] = *field[0]
				}
			}
		})},
		{"keeps the owner that a put leaves empty", empties, putsOver(func(before, rec *sessionstore.Record) {
			if rec.Owner == "" {
				rec.Owner = before.Owner
			}
		})},
		{"has a workspace for records without one", empties, changesRecords(func(r *sessionstore.Record) {
			if r.WorkspaceID == "" {
				r.WorkspaceID = "default"
			}
		})},
		{"keeps the times of touches in a table of their own", touched, func(p process) sessionstore.Store { return &touchTable{process: p, times: map[string]time.Time{}} }},
		{"keeps the seconds of touches", millis, touchesWith(func(_ int, _ []sessionstore.Touch, t *sessionstore.Touch) {
			t.LastAccessedAt = t.LastAccessedAt.Truncate(time.Second)
		})},
		{"writes the time of a touch once a second at most", millis, func(p process) sessionstore.Store { return sparesWrites{p} }},
		{"touches a batch with the time of its first entry", times, touchesWith(func(_ int, batch []sessionstore.Touch, t *sessionstore.Touch) {
			t.LastAccessedAt = batch[0].LastAccessedAt
		})},
		{"touches a batch with its newest time", times, touchesWith(func(_ int, batch []sessionstore.Touch, t *sessionstore.Touch) {
			t.LastAccessedAt = slices.MaxFunc(batch, func(a, b sessionstore.Touch) int { return a.LastAccessedAt.Compare(b.LastAccessedAt) }).LastAccessedAt
		})},
		{"touches a batch with the lifetime of its first entry", lifetimes, touchesWith(func(_ int, batch []sessionstore.Touch, t *sessionstore.Touch) { t.TTL = batch[0].TTL })},
		{"touches a batch with its longest lifetime", lifetimes, touchesWith(func(_ int, batch []sessionstore.Touch, t *sessionstore.Touch) {
			t.TTL = slices.MaxFunc(batch, func(a, b sessionstore.Touch) int { return int(a.TTL - b.TTL) }).TTL
		})},
		{"touches a batch with its shortest lifetime", lifetimes, touchesWith(func(_ int, batch []sessionstore.Touch, t *sessionstore.Touch) {
			t.TTL = slices.MinFunc(batch, func(a, b sessionstore.Touch) int { return int(a.TTL - b.TTL) }).TTL
		})},
		{"touches what comes before the wrong entry of a batch", refused, refusesWith(func(p process, ctx context.Context, batch []sessionstore.Touch, wrong int) {
			_ = p.Touch(ctx, batch[:wrong])
		})},
		{"touches what comes after the wrong entry of a batch", refused, refusesWith(func(p process, ctx context.Context, batch []sessionstore.Touch, wrong int) {
			_ = p.Touch(ctx, batch[wrong+1:])
		})},
		{"deletes the session of the wrong entry of a batch", refused, refusesWith(func(p process, ctx context.Context, batch []sessionstore.Touch, wrong int) {
			_ = p.Delete(ctx, batch[wrong].ID)
		})},
		{"touches no session again that was in a refused batch", refused, func(p process) sessionstore.Store {
			return &shuns{process: p, shunned: map[string]bool{}}
		}},
		{"deletes a session for a put without a lifetime", "a put that is invalid changes nothing", func(p process) sessionstore.Store { return deletesForBadPuts{p} }},
		{"writes the record and then looks at the lifetime", "a put that is invalid changes nothing", func(p process) sessionstore.Store { return writesThenLooks{p} }},
	}
}

func idLies() []lie {
	const resembles = "a text that resembles an id finds, touches and deletes no session"
	return []lie{
		{"reads 26 characters of an id", resembles, keysBy(func(id string) string { return id[:min(len(id), 26)] })},
		{"ends ids at a NUL", resembles, keysBy(func(id string) string { before, _, _ := strings.Cut(id, "\x00"); return before })},
		{"keeps sessions in files named by the last part of an id", resembles, keysBy(path.Base)},
		{"strips quotes from ids", resembles, keysBy(func(id string) string { return strings.Trim(id, `"'`) })},
		{"takes an id for a pattern when it deletes", resembles, func(p process) sessionstore.Store { return &deletesByPattern{process: p, known: known{}} }},
		{"answers a get with the record of another one under way", "calls may come concurrently", func(p process) sessionstore.Store { return &sharesBuffer{process: p} }},
	}
}

func lifetimeLies() []lie {
	const tiny, end = "a lifetime of less than a millisecond is one", "a session is found until shortly before its lifetime is over"
	floor := func(ttl time.Duration) time.Duration { return max(time.Millisecond, ttl.Truncate(time.Second)) }
	return []lie{
		{"takes a lifetime under a millisecond for none", tiny, changesLifetimes(func(ttl time.Duration) time.Duration {
			if ttl < time.Millisecond {
				return 24 * time.Hour
			}
			return ttl
		}, false)},
		{"takes a touch under a millisecond for one without end", tiny, changesLifetimes(func(ttl time.Duration) time.Duration {
			if ttl < time.Millisecond {
				return 24 * time.Hour
			}
			return ttl
		}, true)},
		{"refuses lifetimes under a millisecond", tiny, func(p process) sessionstore.Store { return refusesTiny{p} }},
		{"cuts lifetimes to whole seconds", end, changesLifetimes(floor, false)},
		{"cuts lifetimes of touches to whole seconds", end, touchesWith(func(_ int, _ []sessionstore.Touch, t *sessionstore.Touch) {
			if t.TTL > 0 {
				t.TTL = floor(t.TTL)
			}
		})},
		{"cuts lifetimes of replaces to whole seconds", end, replacesWith(func(_ sessionstore.Record, _ *sessionstore.Record, ttl *time.Duration, _ *string) {
			if *ttl > 0 {
				*ttl = floor(*ttl)
			}
		})},
		{"prolongs what is read", end, func(p process) sessionstore.Store { return slides{p} }},
	}
}

func undoingLies() []lie {
	const put, replaced = "a touch does not undo a put of the same moment", "a touch does not undo a replace of the same moment"
	writesBack := func(p process) sessionstore.Store { return touchesRecords{p} }
	return []lie{
		{"touches by writing back the record that it read", put, writesBack},
		{"touches by writing back the owner that it read", replaced, writesBack},
		{"touches by writing back what another process may have put", "a touch of one process does not undo a put of another", writesBack},
		{"remembers when sessions end", "another process sees a lifetime that a touch changed", func(p process) sessionstore.Store {
			return &remembersEnds{process: p, ends: map[string]time.Time{}}
		}},
		{"keeps what it read until it ends", "another process sees a lifetime that a touch changed", func(p process) sessionstore.Store {
			return &keepsUntilEnd{process: p, known: known{}}
		}},
		{"reads owners through a cache of a second", "another process sees a replace at once", func(p process) sessionstore.Store { return newOwnerCache(p) }},
		{"compares owners with the one it read last", "another process sees a replace at once", func(p process) sessionstore.Store { return &replacesByCache{newOwnerCache(p)} }},
		{"acknowledges replaces before it writes them", "a replace that was acknowledged survives kill -9", func(p process) sessionstore.Store { return &replacesBehind{newBehind(p, "none")} }},
		{"leaves a lock on what it wrote when it is killed", "what a killed process wrote can be written by another one", func(p process) sessionstore.Store { return &locks{process: p} }},
		{"takes its sessions with it when it ends", "a session survives the end of its process in good order", func(p process) sessionstore.Store { return &tidies{process: p} }},
	}
}

func newReplaceLies() []lie {
	const exact, all, lifetimes = "owners are compared byte for byte, however long they are", "a replace writes states of 64 KiB and empties fields", "lifetimes after a replace are exact from a second to 30 days"
	owners := func(same func(have, want string) bool) func(process) sessionstore.Store {
		return replacesWith(func(before sessionstore.Record, _ *sessionstore.Record, _ *time.Duration, owner *string) {
			if same(before.Owner, *owner) {
				*owner = before.Owner
			}
		})
	}
	records := func(change func(before sessionstore.Record, rec *sessionstore.Record)) func(process) sessionstore.Store {
		return replacesWith(func(before sessionstore.Record, rec *sessionstore.Record, _ *time.Duration, _ *string) {
			change(before, rec)
		})
	}
	ttls := func(change func(before sessionstore.Record, ttl time.Duration) time.Duration) func(process) sessionstore.Store {
		return replacesWith(func(before sessionstore.Record, _ *sessionstore.Record, ttl *time.Duration, _ *string) {
			*ttl = change(before, *ttl)
		})
	}
	return []lie{
		{"compares 64 bytes of owners", exact, owners(func(a, b string) bool { return len(a) > 64 && len(b) > 64 && a[:64] == b[:64] })},
		{"lets anybody replace what has no owner", exact, owners(func(have, _ string) bool { return have == "" })},
		{"lets nobody in particular replace what has an owner", exact, owners(func(_, want string) bool { return want == "" })},
		{"normalizes owners", exact, owners(func(a, b string) bool {
			return strings.ReplaceAll(a, "e\u0301", "\u00e9") == strings.ReplaceAll(b, "e\u0301", "\u00e9")
		})},
		{"compares owners up to a NUL", exact, owners(func(a, b string) bool {
			a, _, _ = strings.Cut(a, "\x00")
			b, _, _ = strings.Cut(b, "\x00")
			return a == b
		})},
		{"compares owners that are numbers as numbers", exact, owners(func(a, b string) bool {
			var x, y float64
			_, errA := fmt.Sscan(a, &x)
			_, errB := fmt.Sscan(b, &y)
			return errA == nil && errB == nil && x == y
		})},
		{"cuts states of replaces at 32 KiB", all, records(func(_ sessionstore.Record, rec *sessionstore.Record) {
			rec.State = rec.State[:min(len(rec.State), 32<<10)]
		})},
		{"keeps fields that a replace leaves empty", all, records(func(before sessionstore.Record, rec *sessionstore.Record) {
			if rec.Issuer == "" {
				rec.Issuer = before.Issuer
			}
		})},
		{"keeps a newer time of the last access over a replace", all, records(func(before sessionstore.Record, rec *sessionstore.Record) {
			if before.LastAccessedAt.After(rec.LastAccessedAt) {
				rec.LastAccessedAt = before.LastAccessedAt
			}
		})},
		{"caps lifetimes of replaces at a day", lifetimes, ttls(func(_ sessionstore.Record, ttl time.Duration) time.Duration { return min(ttl, 24*time.Hour) })},
		{"adds the lifetime of a replace to what is left", lifetimes, ttls(func(before sessionstore.Record, ttl time.Duration) time.Duration {
			if ttl > 0 {
				ttl += time.Until(before.ExpiresAt)
			}
			return ttl
		})},
		{"rounds what is left to minutes when a replace leaves it", lifetimes, ttls(func(before sessionstore.Record, ttl time.Duration) time.Duration {
			if left := time.Until(before.ExpiresAt); ttl == 0 && left > time.Minute {
				ttl = left.Truncate(time.Minute)
			}
			return ttl
		})},
	}
}

func outageLies() []lie {
	const replaced, deadline, nothing = "a replace without its backend is unavailable, never not found", "calls to a backend that does not answer return by their deadline", "calls that were given up use nothing up"
	return []lie{
		{"answers a replace with not found while its backend is away", replaced, func(p process) sessionstore.Store { return replaceHider{p, plugins.ErrNotFound} }},
		{"answers that another owner has the session while its backend is away", replaced, func(p process) sessionstore.Store { return replaceHider{p, nil} }},
		{"waits for its backend beyond the deadline of a replace", deadline, func(p process) sessionstore.Store { return replacesLong{p} }},
		{"keeps a connection for each call that was given up", nothing, func(p process) sessionstore.Store { return &leaksSlots{process: p, slots: make(chan struct{}, 50)} }},
		{"gives its backend up for a minute after a call in vain", nothing, func(p process) sessionstore.Store { return &breaks{process: p} }},
	}
}

// putsOver changes a record that is put over another one.
func putsOver(change func(before, rec *sessionstore.Record)) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store {
		return recordChanger{p, func(rec *sessionstore.Record) {
			if before, err := p.Store.Get(context.Background(), rec.ID); err == nil {
				change(&before, rec)
			}
		}}
	}
}

type touchTable struct {
	process
	mu    sync.Mutex
	times map[string]time.Time
}

func (s *touchTable) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	err := s.process.Touch(ctx, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range batch {
		if err == nil && t.LastAccessedAt.After(s.times[t.ID]) {
			s.times[t.ID] = t.LastAccessedAt
		}
	}
	return err
}

func (s *touchTable) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.times[id]; err == nil && at.After(rec.LastAccessedAt) {
		rec.LastAccessedAt = at
	}
	return rec, err
}

// touchesWith changes the entries of batches, each on its own.
func touchesWith(change func(i int, batch []sessionstore.Touch, t *sessionstore.Touch)) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return touchChanger{p, change} }
}

type touchChanger struct {
	process
	change func(int, []sessionstore.Touch, *sessionstore.Touch)
}

func (s touchChanger) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	changed := slices.Clone(batch)
	for i := range changed {
		s.change(i, batch, &changed[i])
	}
	return s.process.Touch(ctx, changed)
}

// sparesWrites leaves out times that are less than a second newer.
type sparesWrites struct{ process }

func (s sparesWrites) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	batch = slices.Clone(batch)
	for i, t := range batch {
		if rec, err := s.Get(ctx, t.ID); err == nil && t.LastAccessedAt.Sub(rec.LastAccessedAt) < time.Second {
			batch[i].LastAccessedAt = rec.LastAccessedAt
		}
	}
	return s.process.Touch(ctx, batch)
}

type deletesForBadPuts struct{ process }

func (s deletesForBadPuts) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if ttl <= 0 {
		_ = s.Delete(ctx, rec.ID)
	}
	return s.process.Put(ctx, rec, ttl)
}

type writesThenLooks struct{ process }

func (s writesThenLooks) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if ttl <= 0 {
		_ = s.process.Put(ctx, rec, time.Minute)
	}
	return s.process.Put(ctx, rec, ttl)
}

type deletesByPattern struct {
	process
	mu sync.Mutex
	known
}

func (s *deletesByPattern) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.mu.Lock()
	s.known[rec.ID] = rec
	s.mu.Unlock()
	return s.process.Put(ctx, rec, ttl)
}

func (s *deletesByPattern) Delete(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.known {
		if matches, err := path.Match(id, other); err == nil && matches {
			_ = s.process.Delete(ctx, other)
		}
	}
	return s.process.Delete(ctx, id)
}

// sharesBuffer has one place for the record that it reads.
type sharesBuffer struct {
	process
	mu   sync.Mutex
	read sessionstore.Record
}

func (s *sharesBuffer) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	s.mu.Lock()
	s.read = rec
	s.mu.Unlock()
	time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, nil
}

type refusesTiny struct{ process }

func (s refusesTiny) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return plugins.ErrInvalid
	}
	return s.process.Put(ctx, rec, ttl)
}

// slides starts a lifetime anew when its session is read.
type slides struct{ process }

func (s slides) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err == nil && time.Until(rec.ExpiresAt) < 3*time.Second {
		_ = s.Touch(ctx, []sessionstore.Touch{{ID: id, LastAccessedAt: rec.LastAccessedAt, TTL: 3 * time.Second}})
	}
	return rec, err
}

// refusesWith is a store that does something else when it refuses a batch.
func refusesWith(do func(p process, ctx context.Context, batch []sessionstore.Touch, wrong int)) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return refuser{p, do} }
}

type refuser struct {
	process
	do func(p process, ctx context.Context, batch []sessionstore.Touch, wrong int)
}

func (r refuser) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if wrong := slices.IndexFunc(batch, func(t sessionstore.Touch) bool { return t.TTL <= 0 }); wrong >= 0 {
		r.do(r.process, ctx, batch, wrong)
	}
	return r.process.Touch(ctx, batch)
}

// shuns passes over sessions that were in a batch which it refused.
type shuns struct {
	process
	shunned map[string]bool
}

func (s *shuns) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	good := slices.DeleteFunc(slices.Clone(batch), func(t sessionstore.Touch) bool { return s.shunned[t.ID] })
	if slices.ContainsFunc(batch, func(t sessionstore.Touch) bool { return t.TTL <= 0 }) {
		for _, t := range batch {
			s.shunned[t.ID] = true
		}
		return s.process.Touch(ctx, batch)
	}
	return s.process.Touch(ctx, good)
}
