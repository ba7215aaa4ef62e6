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
			"ends a text at a NUL":            alters(func(r *audit.Record) { r.Target, _, _ = strings.Cut(r.Target, "\x00") }),
			"trims actors":                    alters(func(r *audit.Record) { r.Actor = strings.TrimSpace(r.Actor) }),
			"lower-cases outcomes":            alters(func(r *audit.Record) { r.Outcome = strings.ToLower(r.Outcome) }),
			"cuts targets at 255 bytes":       alters(func(r *audit.Record) { r.Target = r.Target[:min(len(r.Target), 255)] }),
			"rounds durations":                alters(func(r *audit.Record) { r.Duration = float64(int(r.Duration)) }),
			"masks passwords":                 alters(func(r *audit.Record) { r.Arguments = bytes.ReplaceAll(r.Arguments, []byte("hunter2"), []byte("***")) }),
			"forgets the trace":               alters(func(r *audit.Record) { r.TraceID = "" }),
			"writes - for an empty workspace": alters(func(r *audit.Record) { r.Workspace = cmp.Or(r.Workspace, "-") }),
			"keeps times in seconds":          alters(func(r *audit.Record) { r.Time = r.Time.Truncate(time.Second) }),
			"has 1970 for no time": alters(func(r *audit.Record) {
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
			"drops arguments that are null": alters(func(r *audit.Record) {
				if string(r.Arguments) == "null" {
					r.Arguments = nil
				}
			}),
			"keeps the last record of a batch first": writes(func(c *call) error {
				if n := len(c.records); n > 1 {
					c.records[0], c.records[n-1] = c.records[n-1], c.records[0]
					for i := range c.records {
						c.records[i].Sequence = uint64(i + 1) //nolint:gosec // small
					}
				}
				return c.append()
			}),
			"keeps whatever sequence it has not kept": func(s *sink) {
				s.passes = func(kept []audit.Record, r audit.Record) bool {
					return slices.ContainsFunc(kept, func(has audit.Record) bool { return has.Sequence == r.Sequence })
				}
				s.shows = func(p *page) {
					p.kept = slices.Clone(p.kept)
					slices.SortFunc(p.kept, func(a, b audit.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
				}
			},
			"passes over a whole batch for its first record": writes(func(c *call) error {
				if len(c.records) > 0 && c.records[0].Target == "other" { // kept before with other contents
					return nil
				}
				return c.append()
			}),
			"counts sequences in 32 bits": passes(func(kept []audit.Record, r audit.Record) bool {
				return len(kept) > 0 && uint32(r.Sequence) <= uint32(kept[len(kept)-1].Sequence) //nolint:gosec // the lie
			}),
			"counts sequences with a sign": passes(func(kept []audit.Record, r audit.Record) bool {
				return len(kept) > 0 && int64(r.Sequence) <= int64(kept[len(kept)-1].Sequence) //nolint:gosec // the lie
			}),
			"lower-cases streams": keys(strings.ToLower),
			"writes _ for what is not a letter in streams": keys(func(stream string) string {
				return regexp.MustCompile(`[^0-9A-Za-z-]`).ReplaceAllString(stream, "_")
			}),
			"ends streams at a question mark": keys(func(stream string) string { before, _, _ := strings.Cut(stream, "?"); return before }),
			"has one letter for all characters of four bytes in streams": keys(func(stream string) string {
				return strings.Map(func(r rune) rune { return min(r, 0x10000) }, stream)
			}),
			"names files by escaped streams": func(s *sink) {
				s.check = func(stream string, records []audit.Record) error {
					if len(url.QueryEscape(stream)) > 255 {
						return errors.New("the file name is too long")
					}
					return audit.CheckWrite(stream, records)
				}
			},
			"cuts streams at 30 bytes": keys(func(stream string) string { return stream[:min(len(stream), 30)] }),
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
			"begins with the given sequence": shows(func(p *page) { p.after = max(p.after, 1) - 1 }),
			"reads the number to start after as signed": shows(func(p *page) {
				if p.after > 1<<63 {
					p.after = 0
				}
			}),
		},
		audittest.Writers: {
			"shows what it read at its start": func(s *sink) {
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
			"drops what comes while eight calls wait": func(s *sink) {
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
			"mixes the streams that are written at the same time": func(s *sink) {
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
			"acknowledges before it keeps": writes(func(c *call) error {
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
			"does not start on a line that is torn": func(s *sink) { s.torn = func([]byte) bool { return false } },
			"appends to a line that is torn": func(s *sink) {
				s.torn = func(line []byte) bool { return !json.Valid(line) }
				s.fresh = func() error {
					err := s.follow()
					if info, err := s.file.Stat(); err == nil && info.Size() > s.end {
						s.end = info.Size()
					}
					return err
				}
			},
			"mistakes a torn line for a whole one if it is JSON": func(s *sink) { s.torn = func(line []byte) bool { return !json.Valid(line) } },
			"throws the file away when a line is torn": func(s *sink) {
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
			"remembers 100 streams": func(s *sink) {
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
			"keeps the last 5,000 records": shows(func(p *page) { p.kept = p.kept[max(0, len(p.kept)-5000):] }),
			"finds no record of more than 64 KiB at its start": func(s *sink) {
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
			"cuts reasons at a megabyte": alters(func(r *audit.Record) { r.Reason = r.Reason[:min(len(r.Reason), 1<<20)] }),
			"leaves out arguments of more than a megabyte": alters(func(r *audit.Record) {
				if len(r.Arguments) > 1<<20 {
					r.Arguments = nil
				}
			}),
			"keeps 500 records of a batch": writes(func(c *call) error {
				c.records = c.records[:min(len(c.records), 500)]
				return c.append()
			}),
		},
		audittest.Failing: {
			"acknowledges while its disk is down":                     lost(func(error) error { return nil }),
			"answers an internal error while its disk is down":        lost(func(err error) error { return err }),
			"answers that a record is invalid while its disk is down": lost(func(error) error { return plugins.ErrInvalid }),
			"keeps for later while its disk is down": writes(func(c *call) error {
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
			"waits for its disk beyond the deadline": func(s *sink) {
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
			"leaves part of a record for which there was no space": func(s *sink) {
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

func TestTheKitChecksWhatTheContractSays(t *testing.T) {
	plugintest.Sentences(t, "audit")
}

func TestCorrectSinksPassHoweverUnusualTheyAre(t *testing.T) {
	for name, change := range map[string]func(*sink){
		"the usual one":                     func(*sink) {},
		"one that reads a record at a time": shows(func(p *page) { p.limit = 1 }),
		"one that writes arguments and texts in another way": alters(func(r *audit.Record) {
			if r.Time = r.Time.UTC(); len(r.Arguments) > 0 {
				r.Arguments = json.RawMessage(" " + strings.ReplaceAll(string(r.Arguments), "/", `\/`) + "\n")
			}
		}),
		"one that gathers what several servers write": func(s *sink) {
			s.reach = func(ctx context.Context) error {
				_ = kit.Pause(ctx, 3*time.Millisecond)
				return s.disk.Reach(ctx)
			}
		},
		"one that keeps the first record of a batch for which there is no space": writes(func(c *call) error {
			err := c.append()
			if errors.Is(err, plugins.ErrUnavailable) && len(c.records) > 1 {
				c.records = c.records[:1]
				_ = c.append()
			}
			return err
		}),
		"one that answers with the error of the deadline": func(s *sink) {
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
