package sessionstoretest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// lies are broken stores and the check that must catch each; several may lie about one promise.
func lies() []lie {
	fields, exact, touched, collide := "every field comes back, long and with every kind of character",
		"lifetimes are exact from a second to 30 days", "lifetimes after a touch are exact from a second to 30 days", "ids whose hashes collide are distinct"
	return []lie{
		{"cuts the issuer at 255 bytes", fields, changesRecords(func(r *sessionstore.Record) { r.Issuer = r.Issuer[:min(len(r.Issuer), 255)] })},
		{"swaps issuer and workspace", fields, changesRecords(func(r *sessionstore.Record) {
			if len(r.Issuer) > 60 {
				r.Issuer, r.WorkspaceID = r.WorkspaceID, r.Issuer
			}
		})},
		{"trims the workspace", fields, changesRecords(func(r *sessionstore.Record) { r.WorkspaceID = strings.TrimSpace(r.WorkspaceID) })},
		{"normalizes the issuer", fields, changesRecords(func(r *sessionstore.Record) { r.Issuer = strings.ReplaceAll(r.Issuer, "e\u0301", "é") })},
		{"lower-cases the protocol version", fields, changesRecords(func(r *sessionstore.Record) { r.ProtocolVersion = strings.ToLower(r.ProtocolVersion) })},
		{"always has the same protocol version", fields, changesRecords(func(r *sessionstore.Record) { r.ProtocolVersion = "2025-11-25" })},
		{"ends the workspace at a NUL", fields, changesRecords(func(r *sessionstore.Record) { r.WorkspaceID, _, _ = strings.Cut(r.WorkspaceID, "\x00") })},
		{"has the creation time in seconds on even minutes", fields, changesRecords(func(r *sessionstore.Record) {
			if r.CreatedAt.Minute()%2 == 0 && len(r.Subject) > 60 {
				r.CreatedAt = r.CreatedAt.Truncate(time.Second)
			}
		})},
		{"keeps the newest access time over a put", "a put replaces every field, the time of the last access too", func(p process) sessionstore.Store { return &keepsNewest{process: p} }},

		{"counts milliseconds in 32 bits", exact, changesLifetimes(func(ttl time.Duration) time.Duration {
			return time.Duration(max(1, int32(ttl.Milliseconds()))) * time.Millisecond //nolint:gosec // the lie
		}, false)},
		{"caps lifetimes at a day", exact, changesLifetimes(func(ttl time.Duration) time.Duration { return min(ttl, 24*time.Hour) }, false)},
		{"caps lifetimes at a week", exact, changesLifetimes(func(ttl time.Duration) time.Duration { return min(ttl, 7*24*time.Hour) }, false)},
		{"rounds lifetimes up to minutes", exact, changesLifetimes(func(ttl time.Duration) time.Duration {
			if ttl < 10*time.Second {
				return ttl
			}
			return time.Duration(math.Ceil(ttl.Minutes())) * time.Minute
		}, false)},
		{"adds jitter of 2 % to lifetimes", exact, changesLifetimes(func(ttl time.Duration) time.Duration { return ttl + ttl/50 }, false)},
		{"caps lifetimes at a day when it touches", touched, changesLifetimes(func(ttl time.Duration) time.Duration { return min(ttl, 24*time.Hour) }, true)},
		{"adds the lifetime of a touch to what is left", touched, func(p process) sessionstore.Store { return addsLifetimes{p} }},
		{"says that sessions end an hour later", "expires_at is the moment when the session ends", func(p process) sessionstore.Store { return movesExpiry{p} }},
		{"ends sessions after three quarters of their lifetime", "a session is found until shortly before its lifetime is over", func(p process) sessionstore.Store { return endsEarly{p} }},
		{"ends sessions two seconds late", "a session is not found once its lifetime is over", func(p process) sessionstore.Store { return endsLate{p} }},

		{"keys by 24 bits of SHA-256", "two thousand sessions are distinct", keysBy(func(id string) string { d := sha256.Sum256([]byte(id)); return hex.EncodeToString(d[:3]) })},
		{"keys by CRC-32", collide, keysBy(func(id string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(id))) })},
		{"keys by FNV-1a", collide, keysBy(func(id string) string { h := fnv.New32a(); _, _ = h.Write([]byte(id)); return fmt.Sprint(h.Sum32()) })},
		{"keys by 32 bits of SHA-256", collide, keysBy(func(id string) string { d := sha256.Sum256([]byte(id)); return hex.EncodeToString(d[:4]) })},
		{"keys by the last 4 bytes", collide, keysBy(func(id string) string { return id[max(0, len(id)-4):] + fmt.Sprint(len(id) == 0) })},

		{"writes behind, and sees its own writes only", "another process sees a put at once", func(p process) sessionstore.Store { return newBehind(p, "put") }},
		{"remembers what was not found for a second", "another process sees a put at once", func(p process) sessionstore.Store {
			return &remembersMissing{process: p, missing: map[string]time.Time{}}
		}},
		{"reads records through a cache of a second", "another process sees a replaced record at once", func(p process) sessionstore.Store { return newCache(p, "record") }},
		{"reads access times through a cache of a second", "another process sees a touch at once", func(p process) sessionstore.Store { return newCache(p, "time") }},
		{"finds what it cached although another process deleted it", "another process sees a delete at once", func(p process) sessionstore.Store { return newCache(p, "deleted") }},
		{"touches by writing its cached record back", "a touch of one process does not undo a delete of another", func(p process) sessionstore.Store { return &writesBack{process: p, known: known{}} }},
		{"acknowledges puts before it writes them", "a put that was acknowledged survives kill -9", func(p process) sessionstore.Store { return newBehind(p, "put") }},
		{"acknowledges touches before it writes them", "a touch that was acknowledged survives kill -9", func(p process) sessionstore.Store { return newBehind(p, "touch") }},
		{"acknowledges deletes before it writes them", "a delete that was acknowledged survives kill -9", func(p process) sessionstore.Store { return newBehind(p, "delete") }},

		{"takes puts while its backend is away", "a put without its backend is unavailable", hides("put", nil)},
		{"answers not found while its backend is away", "a get without its backend is unavailable, never not found", hides("get", plugins.ErrNotFound)},
		{"answers an internal error while its backend is away", "a get without its backend is unavailable, never not found", hides("get", errors.New("connection refused"))},
		{"passes over touches while its backend is away", "a touch without its backend is unavailable", hides("touch", nil)},
		{"answers that a session is deleted while its backend is away", "a delete without its backend is unavailable", hides("delete", nil)},
		{"waits for its backend beyond the deadline", "calls to a backend that does not answer return by their deadline", func(p process) sessionstore.Store { return waitsLong{p} }},
		{"never finds its backend again", "once the backend is back the store works again", func(p process) sessionstore.Store { return &givesUp{process: p} }},
		{"revives sessions for a while after their end", "a touch that races with the end of a lifetime never brings the session back", func(p process) sessionstore.Store { return &softEnd{process: p, glass: &glass{touch: revivesExpired}} }},
		{"writes the fields of a record one by one", "puts and gets of one id at once never mix two records", func(p process) sessionstore.Store { return &inParts{process: p} }},
	}
}

type lie struct {
	what  string
	check string
	open  func(process) sessionstore.Store
}

func TestEachLieIsCaughtByItsCheck(t *testing.T) {
	for _, l := range slices.Concat(lies(), edgeLies(), newLies()) {
		t.Run(l.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := slices.DeleteFunc(sessionstoretest.Checks(), func(c sessionstoretest.Check) bool { return c.Name != l.check })
				if failed := kit.Failed(kit.Run(t.Context(), check, subject(l.open))); len(failed) != 1 {
					t.Errorf("not caught by the check %q", l.check)
				}
				time.Sleep(2 * time.Hour) //nolint:forbidigo // until a liar that sleeps is awake, by the clock of the bubble
			})
		})
	}
}

func TestAnHonestSharedStoreIsNotCaughtAndNothingIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, result := range kit.Run(t.Context(), sessionstoretest.Checks(), subject(honestProcess)) {
			if result.Err != nil || result.Skipped != "" {
				t.Errorf("%s: %v %s", result.Name, result.Err, result.Skipped)
			}
		}
	})
}

func TestEveryCheckIsAPromiseOfTheContract(t *testing.T) {
	plugintest.InContract(t, "sessionstore", sessionstoretest.Checks())
}

// changesRecords changes what is put.
func changesRecords(change func(*sessionstore.Record)) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return recordChanger{p, change} }
}

type recordChanger struct {
	process
	change func(*sessionstore.Record)
}

func (s recordChanger) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	s.change(&rec)
	return s.process.Put(ctx, rec, ttl)
}

type keepsNewest struct{ process }

func (s *keepsNewest) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if before, err := s.Get(ctx, rec.ID); err == nil && before.LastAccessedAt.After(rec.LastAccessedAt) {
		rec.LastAccessedAt = before.LastAccessedAt
	}
	return s.process.Put(ctx, rec, ttl)
}

func changesLifetimes(change func(time.Duration) time.Duration, touchesOnly bool) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return lifetimeChanger{p, change, touchesOnly} }
}

type lifetimeChanger struct {
	process
	change      func(time.Duration) time.Duration
	touchesOnly bool
}

func (s lifetimeChanger) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if !s.touchesOnly && ttl > 0 {
		ttl = s.change(ttl)
	}
	return s.process.Put(ctx, rec, ttl)
}

func (s lifetimeChanger) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	batch = slices.Clone(batch)
	for i := range batch {
		if batch[i].TTL > 0 {
			batch[i].TTL = s.change(batch[i].TTL)
		}
	}
	return s.process.Touch(ctx, batch)
}

type addsLifetimes struct{ process }

func (s addsLifetimes) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	batch = slices.Clone(batch)
	for i, t := range batch {
		if rec, err := s.Get(ctx, t.ID); err == nil && t.TTL > 0 {
			batch[i].TTL += time.Until(rec.ExpiresAt)
		}
	}
	return s.process.Touch(ctx, batch)
}

// movesExpiry says that sessions end later and later.
type movesExpiry struct{ process }

func (s movesExpiry) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err == nil && time.Until(rec.ExpiresAt) < 5*time.Second {
		rec.ExpiresAt = time.Now().Add(2 * time.Second)
	}
	return rec, err
}

type endsEarly struct{ process }

func (s endsEarly) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	if err == nil && time.Until(rec.ExpiresAt) < 500*time.Millisecond {
		return sessionstore.Record{}, plugins.ErrNotFound
	}
	return rec, err
}

type endsLate struct{ process }

func (s endsLate) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if ttl > 0 {
		ttl += 2 * time.Second
	}
	return s.process.Put(ctx, rec, ttl)
}

func keysBy(key func(string) string) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return keyChanger{p, key} }
}

type keyChanger struct {
	process
	key func(string) string
}

func (s keyChanger) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if rec.ID != "" {
		rec.ID = s.key(rec.ID)
	}
	return s.process.Put(ctx, rec, ttl)
}

func (s keyChanger) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, s.key(id))
	rec.ID = id
	return rec, err
}

func (s keyChanger) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].ID = s.key(batch[i].ID)
	}
	return s.process.Touch(ctx, batch)
}

func (s keyChanger) Delete(ctx context.Context, id string) error {
	return s.process.Delete(ctx, s.key(id))
}

// behind acknowledges writes of one method and makes them 100 ms later, unless it is killed.
type behind struct {
	process
	method string
	mu     sync.Mutex
	dead   bool
}

func newBehind(p process, method string) *behind { return &behind{process: p, method: method} }

func (s *behind) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func (s *behind) later(do func()) {
	time.AfterFunc(100*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead {
			do()
		}
	})
}

func (s *behind) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if s.method != "put" {
		return s.process.Put(ctx, rec, ttl)
	}
	s.later(func() { _ = s.process.Put(context.WithoutCancel(ctx), rec, ttl) })
	return nil
}

func (s *behind) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if s.method != "touch" {
		return s.process.Touch(ctx, batch)
	}
	s.later(func() { _ = s.process.Touch(context.WithoutCancel(ctx), batch) })
	return nil
}

func (s *behind) Delete(ctx context.Context, id string) error {
	if s.method != "delete" {
		return s.process.Delete(ctx, id)
	}
	s.later(func() { _ = s.process.Delete(context.WithoutCancel(ctx), id) })
	return nil
}

type remembersMissing struct {
	process
	mu      sync.Mutex
	missing map[string]time.Time
}

func (s *remembersMissing) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.missing[id]) < time.Second {
		return sessionstore.Record{}, plugins.ErrNotFound
	}
	rec, err := s.process.Get(ctx, id)
	if errors.Is(err, plugins.ErrNotFound) {
		s.missing[id] = time.Now()
	}
	return rec, err
}

// cache remembers a part of what it read for a second.
type cache struct {
	process
	part string
	mu   sync.Mutex
	read map[string]cached
}

type cached struct {
	rec sessionstore.Record
	at  time.Time
}

func newCache(p process, part string) *cache {
	return &cache{process: p, part: part, read: map[string]cached{}}
}

func (s *cache) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.read[id]
	known = known && time.Since(before.at) < time.Second
	rec, err := s.process.Get(ctx, id)
	switch {
	case !known && err == nil:
		s.read[id] = cached{rec, time.Now()}
	case known && s.part == "record" && err == nil:
		before.rec.LastAccessedAt = rec.LastAccessedAt
		return before.rec, nil
	case known && s.part == "time" && err == nil:
		rec.LastAccessedAt = before.rec.LastAccessedAt
	case known && s.part == "deleted" && errors.Is(err, plugins.ErrNotFound):
		return before.rec, nil
	}
	return rec, err
}

// writesBack touches by putting the record that it knows.
type writesBack struct {
	process
	mu sync.Mutex
	known
}

func (s *writesBack) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.known[id] = rec
	}
	return rec, err
}

func (s *writesBack) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	for _, t := range batch {
		s.mu.Lock()
		rec, ok := s.known[t.ID]
		s.mu.Unlock()
		if ok && t.TTL > 0 {
			rec.LastAccessedAt = t.LastAccessedAt
			_ = s.Put(ctx, rec, t.TTL)
		}
	}
	return s.process.Touch(ctx, batch)
}

// hides answers one method with err while the backend is away.
func hides(method string, err error) func(process) sessionstore.Store {
	return func(p process) sessionstore.Store { return hider{p, method, err} }
}

type hider struct {
	process
	method string
	err    error
}

func (s hider) answer(method string, err error) error {
	if method == s.method && errors.Is(err, plugins.ErrUnavailable) {
		return s.err
	}
	return err
}

func (s hider) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.answer("put", s.process.Put(ctx, rec, ttl))
}

func (s hider) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	rec, err := s.process.Get(ctx, id)
	return rec, s.answer("get", err)
}

func (s hider) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.answer("touch", s.process.Touch(ctx, batch))
}

func (s hider) Delete(ctx context.Context, id string) error {
	return s.answer("delete", s.process.Delete(ctx, id))
}

// waitsLong gives its backend ten seconds, whatever its caller gives.
type waitsLong struct{ process }

func (s waitsLong) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.process.Get(ctx, id)
}

// givesUp does not try again what failed once.
type givesUp struct {
	process
	failed bool
}

func (s *givesUp) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if s.failed {
		return sessionstore.Record{}, plugins.ErrUnavailable
	}
	rec, err := s.process.Get(ctx, id)
	s.failed = s.failed || errors.Is(err, plugins.ErrUnavailable)
	return rec, err
}

// softEnd lets a touch revive what ended.
type softEnd struct {
	process
	*glass
}

func (s *softEnd) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.glass.Put(ctx, rec, ttl)
}
func (s *softEnd) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	return s.glass.Get(ctx, id)
}
func (s *softEnd) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.glass.Touch(ctx, batch)
}
func (s *softEnd) Delete(ctx context.Context, id string) error { return s.glass.Delete(ctx, id) }

// inParts writes half a record first.
type inParts struct{ process }

func (s *inParts) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if before, err := s.Get(ctx, rec.ID); err == nil && ttl > 0 {
		half := rec
		half.ClientInfo = before.ClientInfo
		_ = s.process.Put(ctx, half, ttl)
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
	}
	return s.process.Put(ctx, rec, ttl)
}
