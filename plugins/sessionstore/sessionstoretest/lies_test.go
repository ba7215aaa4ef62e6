package sessionstoretest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	. "github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest" //nolint:revive // the names of the properties
)

// The kinds of small changes.
func writes(change func(*record)) func(*store)  { return func(s *store) { s.writes = change } }
func reads(change func(*record)) func(*store)   { return func(s *store) { s.reads = change } }
func keys(key func(string) string) func(*store) { return func(s *store) { s.key = key } }
func lives(change func(time.Duration) time.Duration) func(*store) {
	return func(s *store) { s.lives = change }
}
func touches(change func(*row, touch, time.Time)) func(*store) {
	return func(s *store) { s.touches = change }
}
func puts(put func(*call) error) func(*store)         { return func(s *store) { s.put = put } }
func touchesAll(touch func(*call) error) func(*store) { return func(s *store) { s.touch = touch } }
func removes(remove func(*call) error) func(*store)   { return func(s *store) { s.remove = remove } }
func lies() plugintest.Lies[*store] {
	const week = 7 * 24 * time.Hour
	return plugintest.Lies[*store]{
		Sequential: {
			"truncates the issuer to 255 bytes":    writes(func(r *record) { r.Issuer = r.Issuer[:min(len(r.Issuer), 255)] }),
			"trims the workspace":                  writes(func(r *record) { r.WorkspaceID = strings.TrimSpace(r.WorkspaceID) }),
			"normalizes Unicode in the subject":    writes(func(r *record) { r.Subject = strings.ReplaceAll(r.Subject, "e\u0301", "é") }),
			"truncates the client's name at a NUL": writes(func(r *record) { r.ClientInfo.Name, _, _ = strings.Cut(r.ClientInfo.Name, "\x00") }),
			"lower-cases the protocol version":     reads(func(r *record) { r.ProtocolVersion = strings.ToLower(r.ProtocolVersion) }),
			"treats the text null as no value": reads(func(r *record) {
				if r.ClientInfo.Version == "null" {
					r.ClientInfo.Version = ""
				}
			}),
			"truncates the state to 65,535 bytes":         writes(func(r *record) { r.State = r.State[:min(len(r.State), 65535)] }),
			"stores the creation time only to the second": writes(func(r *record) { r.CreatedAt = r.CreatedAt.Truncate(time.Second) }),
			"stores the time of the last access as 32-bit seconds": writes(func(r *record) {
				r.LastAccessedAt = time.Unix(int64(int32(r.LastAccessedAt.Unix())), int64(r.LastAccessedAt.Nanosecond())) //nolint:gosec // the lie
			}),
			"strips a byte order mark":  reads(func(r *record) { r.Issuer = strings.TrimPrefix(r.Issuer, "\ufeff") }),
			"escapes angle brackets":    reads(func(r *record) { r.State = strings.ReplaceAll(r.State, "<", "&lt;") }),
			"drops the owner":           reads(func(r *record) { r.Owner = strings.TrimSuffix(r.Owner, "b") }),
			"replaces CRLF line breaks": writes(func(r *record) { r.WorkspaceID = strings.ReplaceAll(r.WorkspaceID, "\r\n", "\n") }),
			"joins fields with a bar": writes(func(r *record) {
				r.WorkspaceID, r.ProtocolVersion, _ = strings.Cut(r.WorkspaceID+"|"+r.ProtocolVersion, "|")
			}),
			"stores times in a zone with daylight saving time": writes(func(r *record) {
				if m := r.CreatedAt.Month(); m > time.March && m < time.October {
					r.CreatedAt = r.CreatedAt.Add(time.Hour)
				}
			}),
			"unescapes ids":                        keys(func(id string) string { return strings.ReplaceAll(id, "%41", "A") }),
			"ignores zero-width characters in ids": keys(func(id string) string { return strings.ReplaceAll(id, "\u200b", "") }),
			"ignores the case of ids":              keys(strings.ToLower),
			"normalizes Unicode in ids":            keys(func(id string) string { return strings.ReplaceAll(id, "e\u0301", "é") }),
			"trims ids":                            keys(strings.TrimSpace),
			"truncates ids to 100 bytes":           keys(func(id string) string { return id[:min(len(id), 100)] }),
			"deletes ids by prefix": removes(func(c *call) error {
				return c.do(c.ctx, func(all rows, _ time.Time) {
					maps.DeleteFunc(all, func(key string, _ row) bool { return strings.HasPrefix(key, c.rec.ID) })
				})
			}),
			"treats part of an id as a path": keys(func(id string) string { return strings.TrimSuffix(id, "/..") }),
			"keeps the newest time of access when a session is put again": puts(func(c *call) error {
				if before, err := c.rightGet(); err == nil && before.LastAccessedAt.After(c.rec.LastAccessedAt) {
					c.rec.LastAccessedAt = before.LastAccessedAt
				}
				return c.rightPut()
			}),
			"ignores a put of an existing session": puts(func(c *call) error {
				if _, err := c.rightGet(); err == nil {
					return nil
				}
				return c.rightPut()
			}),
			"fails to delete a session that does not exist": removes(func(c *call) error {
				if _, err := c.rightGet(); err != nil {
					return err
				}
				return c.rightRemove()
			}),
			"accepts an older time of access from a touch": touches(func(r *row, t touch, now time.Time) { r.LastAccessedAt, r.until = t.LastAccessedAt, now.Add(t.TTL) }),
			"extends a lifetime only with a newer time of access": touches(func(r *row, t touch, now time.Time) {
				if t.LastAccessedAt.After(r.LastAccessedAt) {
					r.LastAccessedAt, r.until = t.LastAccessedAt, now.Add(t.TTL)
				}
			}),
			"never shortens a lifetime": touches(func(r *row, t touch, now time.Time) {
				if t.LastAccessedAt.After(r.LastAccessedAt) {
					r.LastAccessedAt = t.LastAccessedAt
				}
				if until := now.Add(t.TTL); until.After(r.until) {
					r.until = until
				}
			}),
			"touches only the first session of a batch": touchesAll(func(c *call) error {
				c.batch = c.batch[:min(len(c.batch), 1)]
				return c.rightTouch()
			}),
			"replaces any owner if none is expected": replaces(func(c *call) (bool, error) {
				if before, err := c.rightGet(); err == nil && c.owner == "" {
					c.owner = before.Owner
				}
				return c.rightReplace()
			}),
			"truncates owners at a NUL":         owners(func(owner string) string { owner, _, _ = strings.Cut(owner, "\x00"); return owner }),
			"normalizes Unicode in owners":      owners(func(owner string) string { return strings.ReplaceAll(owner, "e\u0301", "é") }),
			"compares owners by CRC-32":         owners(func(owner string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(owner))) }),
			"ignores the case of owners":        owners(strings.ToLower),
			"trims owners":                      owners(strings.TrimSpace),
			"compares only 255 bytes of owners": owners(func(owner string) string { return owner[:min(len(owner), 255)] }),
			"replaces all four-byte characters in ids by the same one": keys(func(id string) string {
				return strings.Map(func(r rune) rune { return min(r, 0x10000) }, id)
			}),
			"stores an unset time as 1970": writes(func(r *record) {
				if r.CreatedAt.IsZero() {
					r.CreatedAt = time.Unix(0, 0)
				}
			}),
			"rounds numbers in the state": reads(func(r *record) { r.State = strings.ReplaceAll(r.State, "12345678901234567890", "12345678901234567000") }),
			"uses escaped ids as file names": puts(func(c *call) error {
				if len(url.QueryEscape(c.rec.ID)) > 255 {
					return errors.New("the file name is too long")
				}
				return c.rightPut()
			}),
			"drops a dot at the end of an id": keys(func(id string) string { return strings.TrimSuffix(id, ".") }),
			"refuses records of more than 70 KB": puts(func(c *call) error {
				if len(fmt.Sprint(c.rec)) > 70_000 {
					return errors.New("the row is too large")
				}
				return c.rightPut()
			}),
			"reports no replacement if nothing changed": replaces(func(c *call) (bool, error) {
				before, _ := c.rightGet()
				replaced, err := c.rightReplace()
				before.ExpiresAt = time.Time{}
				return replaced && (before != c.rec || c.ttl > 0), err
			}),
			"keeps the old time of access when it replaces": replaces(func(c *call) (bool, error) {
				if before, err := c.rightGet(); err == nil {
					c.rec.LastAccessedAt = before.LastAccessedAt
				}
				return c.rightReplace()
			}),
			"restarts the lifetime with every replace": replaces(func(c *call) (bool, error) {
				c.ttl = max(c.ttl, time.Minute)
				return c.rightReplace()
			}),
			"reports a replacement although the owner differs": replaces(func(c *call) (bool, error) {
				_, err := c.rightReplace()
				return err == nil, err
			}),
			"stores lifetimes as 32-bit milliseconds": lives(func(ttl time.Duration) time.Duration {
				return time.Duration(max(1, int32(ttl.Milliseconds()))) * time.Millisecond //nolint:gosec // the lie
			}),
			"ends all sessions after a week": lives(func(ttl time.Duration) time.Duration { return min(ttl, week) }),
			"makes lifetimes 2% longer":      lives(func(ttl time.Duration) time.Duration { return ttl + ttl/50 }),
			"adds the lifetime of a touch to the current end of the session": touches(func(r *row, t touch, _ time.Time) {
				if t.LastAccessedAt.After(r.LastAccessedAt) {
					r.LastAccessedAt = t.LastAccessedAt
				}
				r.until = r.until.Add(t.TTL)
			}),
		},
		Many: {
			"identifies sessions by CRC-32": keys(func(id string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(id))) }),
			"identifies sessions by FNV-1a": keys(func(id string) string { h := fnv.New32a(); _, _ = h.Write([]byte(id)); return fmt.Sprint(h.Sum32()) }),
			"identifies sessions by Java's hash": keys(func(id string) string {
				h := int32(0)
				for _, c := range id {
					h = 31*h + c
				}
				return fmt.Sprint(h)
			}),
			"identifies sessions by 16 bits of SHA-256": keys(func(id string) string { d := sha256.Sum256([]byte(id)); return string(d[:2]) }),
			"keeps at most 10,000 sessions": before(func(_ *store, all rows, _ time.Time) {
				for key := range all {
					if len(all) <= 10_000 {
						break
					}
					delete(all, key)
				}
			}),
			"touches at most 999 sessions of a batch": touchesAll(func(c *call) error {
				c.batch = c.batch[:min(len(c.batch), 999)]
				return c.rightTouch()
			}),
			"refuses statements of more than 100 KB": touchesAll(func(c *call) error {
				if len(fmt.Sprint(c.batch)) > 100_000 {
					return errors.New("the statement is too large")
				}
				return c.rightTouch()
			}),
		},
		Lifetimes: {
			"revives sessions when it touches them": func(s *store) {
				s.over = func(r row, now time.Time) bool { return !now.Before(r.until.Add(900 * time.Millisecond)) }
				s.touch = func(c *call) error {
					return c.do(c.ctx, func(all rows, now time.Time) {
						for _, t := range c.batch {
							if r, ok := all[t.ID]; ok {
								s.touches(&r, t, now)
								all[t.ID] = r
							}
						}
					})
				}
			},
			"revives sessions when it replaces them": replaces(func(c *call) (bool, error) {
				replaced, err := c.rightReplace()
				if errors.Is(err, plugins.ErrNotFound) && c.ttl > 0 {
					return true, c.rightPut()
				}
				return replaced, err
			}),
			"rounds lifetimes to seconds": lives(func(ttl time.Duration) time.Duration { return max(ttl.Round(time.Second), time.Second) }),
			"fails for lifetimes of less than a millisecond": touchesAll(func(c *call) error {
				if slices.ContainsFunc(c.batch, func(t touch) bool { return t.TTL > 0 && t.TTL < time.Millisecond }) {
					return errors.New("invalid expire time")
				}
				return c.rightTouch()
			}),
			"ends a session after its first lifetime": puts(func(c *call) error {
				err := c.rightPut()
				if err == nil && c.ttl < time.Minute {
					time.AfterFunc(c.ttl, func() { c.db.locked(func() { delete(c.db.rows, c.rec.ID) }) })
				}
				return err
			}),
			"purges sessions some time after it found that they had ended": func(s *store) {
				var last time.Time
				before(func(s *store, all rows, now time.Time) {
					if now.Sub(last) <= 5*time.Second {
						return
					}
					last = now
					ended := maps.Clone(all)
					maps.DeleteFunc(ended, func(_ string, r row) bool { return !s.over(r, now) })
					time.AfterFunc(50*time.Millisecond, func() {
						s.db.locked(func() { maps.DeleteFunc(all, func(id string, _ row) bool { _, ok := ended[id]; return ok }) })
					})
				})(s)
			},
			"truncates lifetimes to whole seconds": lives(func(ttl time.Duration) time.Duration { return ttl.Truncate(time.Second) }),
			"ends sessions three seconds late": func(s *store) {
				s.over = func(r row, now time.Time) bool { return now.After(r.until.Add(3 * time.Second)) }
			},
			"ends sessions half a second early": func(s *store) {
				s.over = func(r row, now time.Time) bool { return now.After(r.until.Add(-500 * time.Millisecond)) }
			},
			"purges sessions that were not used for a minute": func(s *store) {
				type use struct{ until, at time.Time }
				used := map[string]use{}
				before(func(_ *store, all rows, now time.Time) {
					for key, r := range all {
						if u := used[key]; u.until != r.until {
							used[key] = use{r.until, now}
						} else if now.Sub(u.at) > time.Minute && r.until.Sub(now) > time.Hour {
							delete(all, key)
						}
					}
				})(s)
			},
		},
		Refusing: {
			"treats a lifetime of zero as a day": puts(func(c *call) error {
				if c.ttl <= 0 {
					c.ttl = 24 * time.Hour
				}
				return c.rightPut()
			}),
			"performs the touches before an invalid one": touchesAll(func(c *call) error {
				for _, t := range c.batch {
					c.batch = []touch{t}
					if err := c.rightTouch(); err != nil {
						return err
					}
				}
				return nil
			}),
			"skips touches with an invalid lifetime": touchesAll(func(c *call) error {
				c.batch = slices.DeleteFunc(slices.Clone(c.batch), func(t touch) bool { return t.TTL <= 0 })
				return c.rightTouch()
			}),
			"deletes a session that is put with an invalid lifetime": puts(func(c *call) error {
				if c.ttl <= 0 {
					_ = c.rightRemove()
				}
				return c.rightPut()
			}),
		},
		Concurrent: {
			"touches with a separate read and write": touchesAll(func(c *call) error {
				for _, t := range c.batch {
					c.rec.ID = t.ID
					rec, err := c.rightGet()
					if errors.Is(err, plugins.ErrNotFound) {
						continue
					}
					if err == nil && t.LastAccessedAt.After(rec.LastAccessedAt) {
						rec.LastAccessedAt = t.LastAccessedAt
					}
					if c.rec, c.ttl = rec, t.TTL; err == nil {
						err = c.rightPut()
					}
					if err != nil {
						return err
					}
				}
				return nil
			}),
			"compares owners and replaces in two steps": replaces(func(c *call) (bool, error) {
				before, err := c.rightGet()
				if err != nil || before.Owner != c.owner {
					return false, err
				}
				c.owner = ""
				return c.rightReplace()
			}),
			"lets two servers take over the same session": replaces(func(c *call) (bool, error) {
				before, err := c.rightGet()
				if err != nil || before.Owner != c.owner {
					return false, err
				}
				if c.ttl == 0 {
					c.ttl = time.Until(before.ExpiresAt)
				}
				return true, c.rightPut()
			}),
			"writes the fields one by one": puts(func(c *call) error {
				half := *c
				if before, err := c.rightGet(); err == nil {
					half.rec.State, half.rec.Owner = before.State, before.Owner
				}
				return errors.Join(half.rightPut(), c.rightPut())
			}),
			"answers reads from a cache for 20 ms":  caching(20*time.Millisecond, false),
			"caches that it did not find a session": caching(20*time.Millisecond, true),
			"deletes some time after its response": removes(func(c *call) error {
				c.ctx = context.Background()
				time.AfterFunc(5*time.Millisecond, func() { _ = c.rightRemove() })
				return nil
			}),
			"locks the sessions of a batch in turn": func(s *store) {
				var locks sync.Map
				s.touch = func(c *call) error {
					for _, t := range c.batch {
						lock, _ := locks.LoadOrStore(t.ID, make(chan bool, 1))
						select {
						case lock.(chan bool) <- true:
							defer func() { <-lock.(chan bool) }()
						case <-time.After(200 * time.Millisecond):
							return errors.New("deadlock detected")
						}
						_ = kit.Pause(c.ctx, time.Millisecond)
					}
					return c.rightTouch()
				}
			},
			"stores the id of a call in a variable that other calls use": func(s *store) {
				var id string
				var mu sync.Mutex
				s.get = func(c *call) (record, error) {
					mu.Lock()
					id = c.rec.ID
					mu.Unlock()
					_ = kit.Pause(c.ctx, time.Millisecond)
					mu.Lock()
					c.rec.ID = id
					mu.Unlock()
					return c.rightGet()
				}
			},
		},
		Cuts: {
			"repeats an interrupted replace": replaces(func(c *call) (bool, error) {
				replaced, err := c.rightReplace()
				if errors.Is(err, plugins.ErrUnavailable) {
					return c.rightReplace()
				}
				return replaced, err
			}),
			"acknowledges an interrupted put": puts(func(c *call) error {
				if err := c.rightPut(); errors.Is(err, plugins.ErrInvalid) {
					return err
				}
				return nil
			}),
			"writes the record and its lifetime in two steps": puts(func(c *call) error {
				c.batch = []touch{{ID: c.rec.ID, LastAccessedAt: c.rec.LastAccessedAt, TTL: max(c.ttl, 1)}}
				c.ttl = 90 * 24 * time.Hour
				return errors.Join(c.rightPut(), c.rightTouch())
			}),
			"treats a broken connection as not found": func(s *store) {
				s.get = func(c *call) (record, error) {
					rec, err := c.rightGet()
					if err != nil {
						err = plugins.ErrNotFound
					}
					return rec, err
				}
			},
			"deletes the old session before a put": puts(func(c *call) error {
				if err := errors.Join(sessionstore.CheckPut(c.rec, c.ttl), c.rightRemove()); err != nil {
					return err
				}
				return c.rightPut()
			}),
		},
		Unavailable: {
			"returns an internal error without its backend": does(func(s *store, ctx context.Context, statement func(rows, time.Time)) error {
				if s.db.do(ctx, statement) != nil {
					return errors.New("connection refused")
				}
				return nil
			}),
			"skips touches without its backend": touchesAll(func(c *call) error {
				if err := c.rightTouch(); errors.Is(err, plugins.ErrInvalid) {
					return err
				}
				return nil
			}),
			"writes an abandoned put when the backend is back": puts(func(c *call) error {
				err := c.rightPut()
				if errors.Is(err, plugins.ErrUnavailable) {
					c.ctx = context.Background()
					go func() {
						for range 100 {
							if _ = kit.Pause(c.ctx, 100*time.Millisecond); c.rightPut() == nil {
								return
							}
						}
					}()
				}
				return err
			}),
			"finishes an abandoned put a second later": puts(func(c *call) error {
				err := c.rightPut()
				if late := *c; err != nil && c.ctx.Err() != nil {
					late.ctx = context.WithoutCancel(c.ctx)
					time.AfterFunc(time.Second, func() { _ = late.rightPut() })
				}
				return err
			}),
			"repeats an abandoned delete three seconds later": removes(func(c *call) error {
				err := c.rightRemove()
				if c.ctx = context.WithoutCancel(c.ctx); err != nil {
					time.AfterFunc(3*time.Second, func() { _ = c.rightRemove() })
				}
				return err
			}),
			"waits for its backend until after the deadline": does(func(s *store, ctx context.Context, statement func(rows, time.Time)) error {
				late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				defer cancel()
				return s.db.do(late, statement)
			}),
		},
		Disturbed: {
			"never reconnects to its backend": func(s *store) {
				lost := false
				s.do = func(ctx context.Context, do func(rows, time.Time)) error {
					err := s.db.do(ctx, do)
					if lost = lost || errors.Is(err, plugins.ErrUnavailable) && ctx.Err() == nil; lost {
						return plugins.ErrUnavailable
					}
					return err
				}
			},
			"retries every interrupted call": func(s *store) {
				again := func(call func() error) error {
					err := call()
					if errors.Is(err, plugins.ErrUnavailable) {
						err = call()
					}
					return err
				}
				s.put = func(c *call) error { return again(c.rightPut) }
				s.remove = func(c *call) error { return again(c.rightRemove) }
				s.replace = func(c *call) (replaced bool, err error) {
					err = again(func() error { replaced, err = c.rightReplace(); return err })
					return replaced, err
				}
			},
		},
		Killed: {
			"acknowledges puts before it writes them":    func(s *store) { behind(s, "put") },
			"acknowledges touches before it writes them": func(s *store) { behind(s, "touch") },
			"acknowledges deletes before it writes them": func(s *store) { behind(s, "delete") },
			"forgets the ends of lifetimes at a restart": func(s *store) {
				s.reads = func(rec *record) { rec.ExpiresAt = time.Time{} }
				s.killed = func() {
					s.db.locked(func() {
						for id, r := range s.db.rows {
							r.until = r.until.AddDate(1, 0, 0)
							s.db.rows[id] = r
						}
					})
				}
			},
		},
	}
}
