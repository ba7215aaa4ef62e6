package audittest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// The kinds of small changes.
func alters(change func(r *audit.Record)) func(*sink) { return func(s *sink) { s.alter = change } }
func writes(write func(c *call) error) func(*sink)    { return func(s *sink) { s.write = write } }
func keys(key func(string) string) func(*sink)        { return func(s *sink) { s.key = key } }
func shows(change func(p *page)) func(*sink)          { return func(s *sink) { s.shows = change } }
func lost(lost func(error) error) func(*sink)         { return func(s *sink) { s.lost = lost } }
func passes(passes func(kept []audit.Record, r audit.Record) bool) func(*sink) {
	return func(s *sink) { s.passes = passes }
}

// later keeps records in the background.
func (c *call) later(delay time.Duration) {
	c.ctx = context.WithoutCancel(c.ctx)
	time.AfterFunc(delay, func() { _ = c.append() })
}

func lies() plugintest.Lies[*sink] {
	return plugintest.Lies[*sink]{
		audittest.Histories: {
			"truncates text at a NUL":                alters(func(r *audit.Record) { r.Target, _, _ = strings.Cut(r.Target, "\x00") }),
			"trims actors":                           alters(func(r *audit.Record) { r.Actor = strings.TrimSpace(r.Actor) }),
			"lower-cases outcomes":                   alters(func(r *audit.Record) { r.Outcome = strings.ToLower(r.Outcome) }),
			"truncates targets to 255 bytes":         alters(func(r *audit.Record) { r.Target = r.Target[:min(len(r.Target), 255)] }),
			"rounds durations":                       alters(func(r *audit.Record) { r.Duration = float64(int(r.Duration)) }),
			"masks passwords":                        alters(func(r *audit.Record) { r.Arguments = bytes.ReplaceAll(r.Arguments, []byte("hunter2"), []byte("***")) }),
			"drops the trace id":                     alters(func(r *audit.Record) { r.TraceID = "" }),
			"writes a hyphen for an empty workspace": alters(func(r *audit.Record) { r.Workspace = cmp.Or(r.Workspace, "-") }),
			"stores times only to the second":        alters(func(r *audit.Record) { r.Time = r.Time.Truncate(time.Second) }),
			"stores an unset time as 1970": alters(func(r *audit.Record) {
				if r.Time.IsZero() {
					r.Time = time.Unix(0, 0)
				}
			}),
			"reads numbers as floats": alters(func(r *audit.Record) {
				var value any
				if json.Unmarshal(r.Arguments, &value) == nil {
					r.Arguments, _ = json.Marshal(value)
				}
			}),
			"drops null arguments": alters(func(r *audit.Record) {
				if string(r.Arguments) == "null" {
					r.Arguments = nil
				}
			}),
			"stores the last record of a batch first": writes(func(c *call) error {
				if n := len(c.records); n > 1 {
					c.records[0], c.records[n-1] = c.records[n-1], c.records[0]
					for i := range c.records {
						c.records[i].Sequence = uint64(i + 1) //nolint:gosec // small
					}
				}
				return c.append()
			}),
			"stores any sequence that it does not have yet": func(s *sink) {
				s.passes = func(kept []audit.Record, r audit.Record) bool {
					return slices.ContainsFunc(kept, func(has audit.Record) bool { return has.Sequence == r.Sequence })
				}
				s.shows = func(p *page) {
					p.kept = slices.Clone(p.kept)
					slices.SortFunc(p.kept, func(a, b audit.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
				}
			},
			"skips a whole batch because of its first record": writes(func(c *call) error {
				if len(c.records) > 0 && c.records[0].Target == "other" { // kept before with other contents
					return nil
				}
				return c.append()
			}),
			"stores sequences in 32 bits": passes(func(kept []audit.Record, r audit.Record) bool {
				return len(kept) > 0 && uint32(r.Sequence) <= uint32(kept[len(kept)-1].Sequence) //nolint:gosec // the lie
			}),
			"stores sequences as signed numbers": passes(func(kept []audit.Record, r audit.Record) bool {
				return len(kept) > 0 && int64(r.Sequence) <= int64(kept[len(kept)-1].Sequence) //nolint:gosec // the lie
			}),
			"lower-cases streams": keys(strings.ToLower),
			"replaces everything but letters in streams by _": keys(func(stream string) string {
				return regexp.MustCompile(`[^0-9A-Za-z-]`).ReplaceAllString(stream, "_")
			}),
			"truncates streams at a question mark": keys(func(stream string) string { before, _, _ := strings.Cut(stream, "?"); return before }),
			"replaces all four-byte characters in streams by the same one": keys(func(stream string) string {
				return strings.Map(func(r rune) rune { return min(r, 0x10000) }, stream)
			}),
			"uses escaped streams as file names": func(s *sink) {
				s.check = func(stream string, records []audit.Record) error {
					if len(url.QueryEscape(stream)) > 255 {
						return errors.New("the file name is too long")
					}
					return audit.CheckWrite(stream, records)
				}
			},
			"truncates streams to 30 bytes": keys(func(stream string) string { return stream[:min(len(stream), 30)] }),
			"accepts batches without a stream": func(s *sink) {
				s.check = func(stream string, records []audit.Record) error {
					return audit.CheckWrite(cmp.Or(stream, "x"), records)
				}
			},
			"stores the valid part of a batch that it refuses": writes(func(c *call) error {
				err := c.append()
				if errors.Is(err, plugins.ErrInvalid) && c.stream != "" {
					c.records = c.records[:1]
					_ = c.append()
				}
				return err
			}),
			"refuses empty batches": writes(func(c *call) error {
				if len(c.records) == 0 {
					return plugins.ErrInvalid
				}
				return c.append()
			}),
			"includes the sequence that it should start after": shows(func(p *page) { p.after = max(p.after, 1) - 1 }),
			"reads the sequence to start after as a signed number": shows(func(p *page) {
				if p.after > 1<<63 {
					p.after = 0
				}
			}),
		},
		audittest.Writers: {
			"returns only what it read at its start": func(s *sink) {
				read := sync.OnceValue(s.follow)
				s.fresh = func() error { return read() }
			},
			"appends without a lock": func(s *sink) {
				s.fresh = func() error {
					end := s.end
					err := s.follow()
					if s.end-end > 200 {
						s.end = end + 200
					}
					return err
				}
			},
			"drops records that arrive while eight calls are waiting": func(s *sink) {
				places := make(chan bool, 8)
				s.write = func(c *call) error {
					select {
					case places <- true:
						defer func() { <-places }()
						return c.append()
					default:
						return c.check(c.stream, c.records)
					}
				}
			},
			"mixes up streams that are written at the same time": func(s *sink) {
				var last string
				s.write = func(c *call) error {
					last = c.stream
					time.Sleep(time.Millisecond) //nolint:forbidigo // the lie
					c.stream = last
					return c.append()
				}
			},
		},
		audittest.Endings: {
			"acknowledges records before it stores them": writes(func(c *call) error {
				c.later(time.Millisecond)
				return c.check(c.stream, c.records)
			}),
			"loses its buffered records when it is killed": func(s *sink) {
				var gathered []byte
				s.store = func(raw []byte) error {
					if gathered = append(gathered, raw...); len(gathered) < 4096 {
						return nil
					}
					defer func() { gathered = nil }()
					return s.appendTo(s.file, s.end+int64(len(raw)-len(gathered)), gathered)
				}
				s.fresh = func() error {
					if len(gathered) > 0 {
						return nil
					}
					return s.follow()
				}
			},
			"does not start if a line is torn": func(s *sink) { s.torn = func([]byte) bool { return false } },
			"appends to a torn line": func(s *sink) {
				s.torn = func(line []byte) bool { return !json.Valid(line) }
				s.fresh = func() error {
					err := s.follow()
					if info, err := s.file.Stat(); err == nil && info.Size() > s.end {
						s.end = info.Size()
					}
					return err
				}
			},
			"mistakes a torn line for a complete one if it is valid JSON": func(s *sink) { s.torn = func(line []byte) bool { return !json.Valid(line) } },
			"deletes the file if a line is torn": func(s *sink) {
				follow := s.follow
				s.fresh = func() error {
					info, _ := s.file.Stat()
					raw := make([]byte, info.Size()-s.end)
					_, _ = s.file.ReadAt(raw, s.end)
					if len(raw) > 0 && !bytes.HasSuffix(raw, []byte("\n")) {
						s.end, s.streams = 0, map[string][]audit.Record{}
						return s.file.Truncate(0)
					}
					return follow()
				}
			},
		},
		audittest.Amounts: {
			"remembers at most 100 streams": func(s *sink) {
				var order []string
				s.write = func(c *call) error {
					c.mu.Lock()
					if order = append(order, c.stream); len(order) > 100 {
						delete(c.streams, order[0])
						order = order[1:]
					}
					c.mu.Unlock()
					return c.append()
				}
			},
			"keeps only the last 5,000 records": shows(func(p *page) { p.kept = p.kept[max(0, len(p.kept)-5000):] }),
			"ignores records of more than 64 KiB at its start": func(s *sink) {
				start := sync.OnceFunc(func() {
					for name, all := range s.streams {
						s.streams[name] = slices.DeleteFunc(all, func(r audit.Record) bool { return len(r.Arguments) > 64<<10 })
					}
				})
				s.fresh = func() error {
					defer start()
					return s.follow()
				}
			},
			"refuses batches of more than 5 MiB": writes(func(c *call) error {
				total := 0
				for _, r := range c.records {
					total += len(r.Arguments) + len(r.Target)
				}
				if total > 5<<20 {
					return plugins.ErrInvalid
				}
				return c.append()
			}),
			"truncates reasons to a megabyte": alters(func(r *audit.Record) { r.Reason = r.Reason[:min(len(r.Reason), 1<<20)] }),
			"drops arguments of more than a megabyte": alters(func(r *audit.Record) {
				if len(r.Arguments) > 1<<20 {
					r.Arguments = nil
				}
			}),
			"stores only 500 records of a batch": writes(func(c *call) error {
				c.records = c.records[:min(len(c.records), 500)]
				return c.append()
			}),
		},
		audittest.Failing: {
			"acknowledges records while its disk is unavailable":        lost(func(error) error { return nil }),
			"returns an internal error while its disk is unavailable":   lost(func(err error) error { return err }),
			"reports a record as invalid while its disk is unavailable": lost(func(error) error { return plugins.ErrInvalid }),
			"buffers records while its disk is unavailable": writes(func(c *call) error {
				err := c.append()
				if errors.Is(err, plugins.ErrUnavailable) {
					c.later(time.Second)
					return nil
				}
				return err
			}),
			"writes the rest of an abandoned batch half a second later": writes(func(c *call) error {
				err := c.append()
				if rest := *c; errors.Is(err, plugins.ErrUnavailable) && len(c.records) > 1 {
					rest.records = c.records[1:]
					rest.later(500 * time.Millisecond)
				}
				return err
			}),
			"waits for its disk until after the deadline": func(s *sink) {
				s.reach = func(ctx context.Context) error { return s.disk.Reach(context.WithoutCancel(ctx)) }
				s.write = func(c *call) error {
					done := make(chan error, 1)
					go func() { done <- c.append() }()
					select {
					case err := <-done:
						return err
					case <-time.After(5 * time.Second):
						return plugins.ErrUnavailable
					}
				}
			},
			"remembers records that it failed to store as stored": writes(func(c *call) error {
				err := c.append()
				if errors.Is(err, plugins.ErrUnavailable) {
					c.mu.Lock()
					c.streams[c.stream] = append(c.streams[c.stream], c.records...)
					c.mu.Unlock()
				}
				return err
			}),
			"leaves part of a record when the disk is full": func(s *sink) {
				s.undo = func() error { return nil }
				read := sync.OnceValue(s.follow)
				s.fresh = func() error { return read() }
				s.store = func(raw []byte) error {
					info, err := s.file.Stat()
					if err != nil {
						return err
					}
					return s.appendTo(s.file, info.Size(), raw)
				}
			},
		},
	}
}

func TestTheKitCitesItsContract(t *testing.T) {
	plugintest.Sentences(t, "audit")
}

func TestCorrectButUnusualSinksPass(t *testing.T) {
	for name, change := range map[string]func(*sink){
		"the usual one":                       func(*sink) {},
		"one that reads one record at a time": shows(func(p *page) { p.limit = 1 }),
		"one that encodes arguments and text differently": alters(func(r *audit.Record) {
			if r.Time = r.Time.UTC(); len(r.Arguments) > 0 {
				r.Arguments = json.RawMessage(" " + strings.ReplaceAll(string(r.Arguments), "/", `\/`) + "\n")
			}
		}),
		"one that combines writes from several servers": func(s *sink) {
			s.reach = func(ctx context.Context) error {
				_ = kit.Pause(ctx, 3*time.Millisecond)
				return s.disk.Reach(ctx)
			}
		},
		"one that keeps the first record of a batch when the disk is full": writes(func(c *call) error {
			err := c.append()
			if errors.Is(err, plugins.ErrUnavailable) && len(c.records) > 1 {
				c.records = c.records[:1]
				_ = c.append()
			}
			return err
		}),
		"one that returns the context's deadline error": func(s *sink) {
			s.write = func(c *call) error {
				if err := c.append(); err == nil || c.ctx.Err() == nil {
					return err
				}
				return c.ctx.Err()
			}
		},
		"one that keeps the records of a batch one by one": writes(func(c *call) error {
			if err := c.check(c.stream, c.records); err != nil {
				return err
			}
			for _, r := range c.records {
				c.records = []audit.Record{r}
				if err := c.append(); err != nil {
					return err
				}
			}
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := plugintest.Trial(kit.Normal)
			if name != "the usual one" {
				try.Effort = kit.Quick
			}
			plugintest.Judge(t, audittest.Properties(), try, open(t, change))
		})
	}
}

func TestFaultyImplementationsAreCaught(t *testing.T) {
	plugintest.Liars(t, plugintest.Time, audittest.Properties(), plugintest.Trial(kit.Normal), open, lies())
}
