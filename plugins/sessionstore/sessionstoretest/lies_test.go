package sessionstoretest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	. "github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest" //nolint:revive // the names of the properties
)

type (
	record = sessionstore.Record
	touch  = sessionstore.Touch
	rows   = map[string]row
)

// lie is a small change to a correct store, with the property that must catch it.
type lie struct {
	what, property string
	change         func(*store)
}

// The kinds of small changes.
func writes(change func(*record)) func(*store) { return func(s *store) { s.writes = change } }
func reads(change func(*record)) func(*store) {
	return func(s *store) { s.reads = func(_ context.Context, rec *record) { change(rec) } }
}
func keys(key func(string) string) func(*store) { return func(s *store) { s.key = key } }
func lives(change func(string, time.Duration) time.Duration) func(*store) {
	return func(s *store) { s.lives = change }
}
func touches(change func(*row, touch, time.Time)) func(*store) {
	return func(s *store) { s.touches = change }
}

func lies() []lie {
	const week = 7 * 24 * time.Hour
	return []lie{
		// What the store keeps of a record.
		{"cuts the issuer at 255 bytes", Sequential, writes(func(r *record) { r.Issuer = r.Issuer[:min(len(r.Issuer), 255)] })},
		{"trims the workspace", Sequential, writes(func(r *record) { r.WorkspaceID = strings.TrimSpace(r.WorkspaceID) })},
		{"composes characters of the subject", Sequential, writes(func(r *record) { r.Subject = strings.ReplaceAll(r.Subject, "e\u0301", "é") })},
		{"ends the client's name at a NUL", Sequential, writes(func(r *record) { r.ClientInfo.Name, _, _ = strings.Cut(r.ClientInfo.Name, "\x00") })},
		{"lower-cases the protocol version", Sequential, reads(func(r *record) { r.ProtocolVersion = strings.ToLower(r.ProtocolVersion) })},
		{"takes null for nothing", Sequential, reads(func(r *record) {
			if r.ClientInfo.Version == "null" {
				r.ClientInfo.Version = ""
			}
		})},
		{"keeps the state up to 65,535 bytes", Sequential, writes(func(r *record) { r.State = r.State[:min(len(r.State), 65535)] })},
		{"keeps the creation time in seconds", Sequential, writes(func(r *record) { r.CreatedAt = r.CreatedAt.Truncate(time.Second) })},
		{"keeps the time of the last access in 32 bits of seconds", Sequential, writes(func(r *record) {
			r.LastAccessedAt = time.Unix(int64(int32(r.LastAccessedAt.Unix())), int64(r.LastAccessedAt.Nanosecond())) //nolint:gosec // the lie
		})},
		{"strips a mark at the start", Sequential, reads(func(r *record) { r.Issuer = strings.TrimPrefix(r.Issuer, "\ufeff") })},
		{"escapes angle brackets", Sequential, reads(func(r *record) { r.State = strings.ReplaceAll(r.State, "<", "&lt;") })},
		{"drops the owner", Sequential, reads(func(r *record) { r.Owner = strings.TrimSuffix(r.Owner, "b") })},
		{"joins lines", Sequential, writes(func(r *record) { r.WorkspaceID = strings.ReplaceAll(r.WorkspaceID, "\r\n", "\n") })},
		{"joins fields with a bar", Sequential, writes(func(r *record) {
			r.WorkspaceID, r.ProtocolVersion, _ = strings.Cut(r.WorkspaceID+"|"+r.ProtocolVersion, "|")
		})},
		{"keeps times in a zone with summer time", Sequential, writes(func(r *record) {
			if m := r.CreatedAt.Month(); m > time.March && m < time.October {
				r.CreatedAt = r.CreatedAt.Add(time.Hour)
			}
		})},

		// Ids.
		{"unescapes ids", Sequential, keys(func(id string) string { return strings.ReplaceAll(id, "%41", "A") })},
		{"ignores characters without width in ids", Sequential, keys(func(id string) string { return strings.ReplaceAll(id, "\u200b", "") })},
		{"compares ids without case", Sequential, keys(strings.ToLower)},
		{"composes characters of ids", Sequential, keys(func(id string) string { return strings.ReplaceAll(id, "e\u0301", "é") })},
		{"trims ids", Sequential, keys(strings.TrimSpace)},
		{"keeps 100 bytes of ids", Sequential, keys(func(id string) string { return id[:min(len(id), 100)] })},
		{"deletes ids by their beginning", Sequential, func(s *store) {
			s.remove = func(ctx context.Context, id string) error {
				return s.do(ctx, func(all rows, _ time.Time) {
					maps.DeleteFunc(all, func(key string, _ row) bool { return strings.HasPrefix(key, id) })
				})
			}
		}},
		{"takes a part of an id for a path", Sequential, keys(func(id string) string { return strings.TrimSuffix(id, "/..") })},
		{"keys by CRC-32", Many, keys(func(id string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(id))) })},
		{"keys by FNV-1a", Many, keys(func(id string) string { h := fnv.New32a(); _, _ = h.Write([]byte(id)); return fmt.Sprint(h.Sum32()) })},
		{"keys by Java's hash", Many, keys(func(id string) string {
			h := int32(0)
			for _, c := range id {
				h = 31*h + c
			}
			return fmt.Sprint(h)
		})},
		{"keys by 16 bits of SHA-256", Many, keys(func(id string) string { d := sha256.Sum256([]byte(id)); return string(d[:2]) })},
		{"keeps 10,000 sessions", Many, func(s *store) {
			s.do = func(ctx context.Context, do func(rows, time.Time)) error {
				return s.db.do(ctx, func(all rows, now time.Time) {
					do(all, now)
					for key := range all {
						if len(all) <= 10_000 {
							break
						}
						delete(all, key)
					}
				})
			}
		}},
		{"touches 500 sessions of a batch", Many, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error { return s.rightTouch(ctx, batch[:min(len(batch), 500)]) }
		}},

		// What calls do.
		{"keeps the newest time of access over a put", Sequential, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if before, err := s.rightGet(ctx, rec.ID); err == nil && before.LastAccessedAt.After(rec.LastAccessedAt) {
					rec.LastAccessedAt = before.LastAccessedAt
				}
				return s.rightPut(ctx, rec, ttl)
			}
		}},
		{"puts only what is new", Sequential, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if _, err := s.rightGet(ctx, rec.ID); err == nil {
					return nil
				}
				return s.rightPut(ctx, rec, ttl)
			}
		}},
		{"fails to delete what does not exist", Sequential, func(s *store) {
			s.remove = func(ctx context.Context, id string) error {
				if _, err := s.rightGet(ctx, id); err != nil {
					return err
				}
				return s.rightRemove(ctx, id)
			}
		}},
		{"takes the time of the last touch, older or not", Sequential, touches(func(r *row, t touch, now time.Time) { r.LastAccessedAt, r.until = t.LastAccessedAt, now.Add(t.TTL) })},
		{"prolongs only with a newer time of access", Sequential, touches(func(r *row, t touch, now time.Time) {
			if t.LastAccessedAt.After(r.LastAccessedAt) {
				r.LastAccessedAt, r.until = t.LastAccessedAt, now.Add(t.TTL)
			}
		})},
		{"never shortens a lifetime", Sequential, touches(func(r *row, t touch, now time.Time) {
			if t.LastAccessedAt.After(r.LastAccessedAt) {
				r.LastAccessedAt = t.LastAccessedAt
			}
			if until := now.Add(t.TTL); until.After(r.until) {
				r.until = until
			}
		})},
		{"touches the first session of a batch alone", Sequential, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error { return s.rightTouch(ctx, batch[:min(len(batch), 1)]) }
		}},
		{"brings sessions back when it touches them", Lifetimes, func(s *store) {
			s.over = func(r row, now time.Time) bool { return !now.Before(r.until.Add(900 * time.Millisecond)) }
			s.touch = func(ctx context.Context, batch []touch) error {
				return s.do(ctx, func(all rows, now time.Time) {
					for _, t := range batch {
						if r, ok := all[t.ID]; ok {
							s.touches(&r, t, now)
							all[t.ID] = r
						}
					}
				})
			}
		}},
		{"brings sessions back when it replaces them", Lifetimes, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				replaced, err := s.rightReplace(ctx, rec, ttl, owner)
				if errors.Is(err, plugins.ErrNotFound) && ttl > 0 {
					return true, s.rightPut(ctx, rec, ttl)
				}
				return replaced, err
			}
		}},
		{"replaces whatever the owner is when none is expected", Sequential, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				if before, err := s.rightGet(ctx, rec.ID); err == nil && owner == "" {
					owner = before.Owner
				}
				return s.rightReplace(ctx, rec, ttl, owner)
			}
		}},
		{"compares owners without case", Sequential, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				if before, err := s.rightGet(ctx, rec.ID); err == nil && strings.EqualFold(before.Owner, owner) {
					owner = before.Owner
				}
				return s.rightReplace(ctx, rec, ttl, owner)
			}
		}},
		{"keeps the time of access when it replaces", Sequential, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				if before, err := s.rightGet(ctx, rec.ID); err == nil {
					rec.LastAccessedAt = before.LastAccessedAt
				}
				return s.rightReplace(ctx, rec, ttl, owner)
			}
		}},
		{"starts the lifetime anew at every replace", Sequential, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				return s.rightReplace(ctx, rec, max(ttl, time.Minute), owner)
			}
		}},
		{"answers that it replaced when the owner is another", Sequential, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				_, err := s.rightReplace(ctx, rec, ttl, owner)
				return err == nil, err
			}
		}},

		// Calls that are not allowed.
		{"takes a lifetime of nothing for a day", Refusing, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if ttl <= 0 {
					ttl = 24 * time.Hour
				}
				return s.rightPut(ctx, rec, ttl)
			}
		}},
		{"touches what comes before a wrong lifetime", Refusing, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error {
				for _, t := range batch {
					if err := s.rightTouch(ctx, []touch{t}); err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{"passes over touches with a wrong lifetime", Refusing, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error {
				return s.rightTouch(ctx, slices.DeleteFunc(slices.Clone(batch), func(t touch) bool { return t.TTL <= 0 }))
			}
		}},
		{"deletes a session that is put without a lifetime", Refusing, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if ttl <= 0 {
					_ = s.rightRemove(ctx, rec.ID)
				}
				return s.rightPut(ctx, rec, ttl)
			}
		}},

		// Lifetimes.
		{"keeps lifetimes in whole seconds", Lifetimes, lives(func(_ string, ttl time.Duration) time.Duration { return ttl.Truncate(time.Second) })},
		{"counts lifetimes in 32 bits of milliseconds", Sequential, lives(func(_ string, ttl time.Duration) time.Duration {
			return time.Duration(max(1, int32(ttl.Milliseconds()))) * time.Millisecond //nolint:gosec // the lie
		})},
		{"ends all sessions after a week", Sequential, lives(func(_ string, ttl time.Duration) time.Duration { return min(ttl, week) })},
		{"adds 2 % to lifetimes", Sequential, lives(func(_ string, ttl time.Duration) time.Duration { return ttl + ttl/50 })},
		{"ends sessions three seconds late", Lifetimes, func(s *store) {
			s.over = func(r row, now time.Time) bool { return now.After(r.until.Add(3 * time.Second)) }
		}},
		{"ends sessions half a second early", Lifetimes, func(s *store) {
			s.over = func(r row, now time.Time) bool { return now.After(r.until.Add(-500 * time.Millisecond)) }
		}},
		{"purges what nobody has used for a minute", Lifetimes, func(s *store) {
			type use struct{ until, at time.Time }
			used := map[string]use{}
			s.do = func(ctx context.Context, do func(rows, time.Time)) error {
				return s.db.do(ctx, func(all rows, now time.Time) {
					for key, r := range all {
						if u := used[key]; u.until != r.until {
							used[key] = use{r.until, now}
						} else if now.Sub(u.at) > time.Minute && r.until.Sub(now) > time.Hour {
							delete(all, key)
						}
					}
					do(all, now)
				})
			}
		}},
		{"counts the lifetimes of touches from when they were opened", Sequential, touches(func(r *row, t touch, _ time.Time) {
			if t.LastAccessedAt.After(r.LastAccessedAt) {
				r.LastAccessedAt = t.LastAccessedAt
			}
			r.until = r.until.Add(t.TTL)
		})},

		// Concurrent clients.
		{"reads and then writes when it touches", Concurrent, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error {
				for _, t := range batch {
					rec, err := s.rightGet(ctx, t.ID)
					if errors.Is(err, plugins.ErrNotFound) {
						continue
					}
					if err == nil && t.LastAccessedAt.After(rec.LastAccessedAt) {
						rec.LastAccessedAt = t.LastAccessedAt
					}
					if err == nil {
						err = s.rightPut(ctx, rec, t.TTL)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{"compares owners before it replaces", Concurrent, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				before, err := s.rightGet(ctx, rec.ID)
				if err != nil || before.Owner != owner {
					return false, err
				}
				return s.rightReplace(ctx, rec, ttl, "") // the lie below ignores the owner
			}
		}},
		{"lets two servers take a session over", Concurrent, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				before, err := s.rightGet(ctx, rec.ID)
				if err != nil || before.Owner != owner {
					return false, err
				}
				if ttl == 0 {
					ttl = time.Until(before.ExpiresAt)
				}
				return true, s.rightPut(ctx, rec, ttl)
			}
		}},
		{"writes the fields one by one", Concurrent, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				half := rec
				if before, err := s.rightGet(ctx, rec.ID); err == nil {
					half.State, half.Owner = before.State, before.Owner
				}
				return errors.Join(s.rightPut(ctx, half, ttl), s.rightPut(ctx, rec, ttl))
			}
		}},
		{"answers reads from a cache of 20 ms", Concurrent, caching(20*time.Millisecond, false)},
		{"remembers what it did not find", Concurrent, caching(20*time.Millisecond, true)},
		{"deletes a moment after it has answered", Concurrent, func(s *store) {
			s.remove = func(_ context.Context, id string) error {
				go func() {
					nap(context.Background(), 5*time.Millisecond)
					_ = s.rightRemove(context.Background(), id)
				}()
				return nil
			}
		}},
		{"keeps the id of a call where other calls find it", Concurrent, func(s *store) {
			var id string
			var mu sync.Mutex
			s.get = func(ctx context.Context, asked string) (record, error) {
				mu.Lock()
				id = asked
				mu.Unlock()
				nap(ctx, time.Millisecond)
				mu.Lock()
				mixed := id
				mu.Unlock()
				return s.rightGet(ctx, mixed)
			}
		}},

		// Faults.
		{"repeats a replace that broke off", Cuts, func(s *store) {
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
				replaced, err := s.rightReplace(ctx, rec, ttl, owner)
				if errors.Is(err, plugins.ErrUnavailable) {
					return s.rightReplace(ctx, rec, ttl, owner)
				}
				return replaced, err
			}
		}},
		{"answers that a put is done when it broke off", Cuts, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if err := s.rightPut(ctx, rec, ttl); errors.Is(err, plugins.ErrInvalid) {
					return err
				}
				return nil
			}
		}},
		{"writes the record and then its lifetime", Cuts, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				return errors.Join(s.rightPut(ctx, rec, 90*24*time.Hour), s.rightTouch(ctx, []touch{{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt, TTL: max(ttl, 1)}}))
			}
		}},
		{"takes a broken connection for not found", Cuts, func(s *store) {
			s.get = func(ctx context.Context, id string) (record, error) {
				rec, err := s.rightGet(ctx, id)
				if err != nil {
					err = plugins.ErrNotFound
				}
				return rec, err
			}
		}},
		{"deletes before it puts", Cuts, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				if err := errors.Join(sessionstore.CheckPut(rec, ttl), s.rightRemove(ctx, rec.ID)); err != nil {
					return err
				}
				return s.rightPut(ctx, rec, ttl)
			}
		}},
		{"answers an internal error without its backend", Unavailable, func(s *store) {
			s.do = func(ctx context.Context, do func(rows, time.Time)) error {
				if s.db.do(ctx, do) != nil {
					return errors.New("connection refused")
				}
				return nil
			}
		}},
		{"passes over touches without its backend", Unavailable, func(s *store) {
			s.touch = func(ctx context.Context, batch []touch) error {
				if err := s.rightTouch(ctx, batch); errors.Is(err, plugins.ErrInvalid) {
					return err
				}
				return nil
			}
		}},
		{"writes what was given up when the backend is back", Unavailable, func(s *store) {
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				err := s.rightPut(ctx, rec, ttl)
				if errors.Is(err, plugins.ErrUnavailable) {
					go func() {
						for range 100 {
							if nap(context.Background(), 100*time.Millisecond); s.rightPut(context.Background(), rec, ttl) == nil {
								return
							}
						}
					}()
				}
				return err
			}
		}},
		{"repeats a delete that was given up three seconds later", Unavailable, func(s *store) {
			s.remove = func(ctx context.Context, id string) error {
				err := s.rightRemove(ctx, id)
				if err != nil {
					time.AfterFunc(3*time.Second, func() { _ = s.rightRemove(context.WithoutCancel(ctx), id) })
				}
				return err
			}
		}},
		{"waits for its backend beyond the deadline", Unavailable, func(s *store) {
			s.do = func(ctx context.Context, do func(rows, time.Time)) error {
				late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				defer cancel()
				return s.db.do(late, do)
			}
		}},
		{"never finds its backend again", Disturbed, func(s *store) {
			lost := false
			s.do = func(ctx context.Context, do func(rows, time.Time)) error {
				err := s.db.do(ctx, do)
				if lost = lost || errors.Is(err, plugins.ErrUnavailable) && ctx.Err() == nil; lost {
					return plugins.ErrUnavailable
				}
				return err
			}
		}},
		{"tries whatever broke off once more", Disturbed, func(s *store) {
			again := func(call func() error) error {
				err := call()
				if errors.Is(err, plugins.ErrUnavailable) {
					err = call()
				}
				return err
			}
			s.put = func(ctx context.Context, rec record, ttl time.Duration) error {
				return again(func() error { return s.rightPut(ctx, rec, ttl) })
			}
			s.remove = func(ctx context.Context, id string) error {
				return again(func() error { return s.rightRemove(ctx, id) })
			}
			s.replace = func(ctx context.Context, rec record, ttl time.Duration, owner string) (replaced bool, err error) {
				err = again(func() error { replaced, err = s.rightReplace(ctx, rec, ttl, owner); return err })
				return replaced, err
			}
		}},

		// The process is killed.
		{"acknowledges puts before it writes them", Killed, func(s *store) { behind(s, "put") }},
		{"acknowledges touches before it writes them", Killed, func(s *store) { behind(s, "touch") }},
		{"acknowledges deletes before it writes them", Killed, func(s *store) { behind(s, "delete") }},
		{"forgets at a restart when lifetimes end", Killed, func(s *store) {
			s.reads = func(_ context.Context, rec *record) { rec.ExpiresAt = time.Time{} }
			s.killed = func() {
				s.db.locked(func() {
					for id, r := range s.db.rows {
						r.until = r.until.AddDate(1, 0, 0)
						s.db.rows[id] = r
					}
				})
			}
		}},
	}
}
