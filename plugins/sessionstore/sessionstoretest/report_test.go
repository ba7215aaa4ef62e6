package sessionstoretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

const second = time.Second

// history returns a history of one session with the id "s", in which calls take a second each unless they say otherwise.
func history(calls ...sessionstoretest.Operation) sessionstoretest.History {
	h := sessionstoretest.History{Began: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Replaces: true, Behind: &sessionstoretest.Window{}}
	for i, op := range calls {
		op.ID = "s"
		if op.Call == 0 {
			op.Call = time.Duration(2*i+1) * second
		}
		if op.Return == 0 {
			op.Return = op.Call + second
		}
		if op.Answer == "" {
			op.Answer = "OK"
		}
		h.Calls = append(h.Calls, op)
	}
	return h
}

func TestAReportSaysWhatWasWrongWithTheAnswer(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 0, s, 0, time.UTC) }
	rec := record{ID: "s", Subject: "ada", Issuer: "i", CreatedAt: at(1), LastAccessedAt: at(5)}
	other, late, never := rec, rec, rec
	other.Subject, late.LastAccessedAt, never.LastAccessedAt = "bob", at(9), time.Time{}
	type op = sessionstoretest.Operation
	put := op{Method: "Put", Record: rec, TTL: time.Hour}
	for name, c := range map[string]struct {
		history sessionstoretest.History
		says    []string
		not     []string
	}{
		"a field": {
			history(put, op{Method: "Touch", Accessed: at(9), TTL: time.Hour}, op{Method: "Get", Got: rec}),
			[]string{"demanded:     the same, but accessed 2026-01-02T03:00:09.000 in place of 2026-01-02T03:00:05.000\n", "newest last_accessed_at"}, []string{"which lives"},
		},
		"a field that nobody set": {
			history(op{Method: "Put", Record: never, TTL: time.Hour}, op{Method: "Get", Got: rec}),
			[]string{"the same, but accessed none in place of 2026-01-02T03:00:05.000\n", "exactly as it was put"}, []string{"0001"},
		},
		"a reported end of the lifetime": {
			history(put, op{Method: "Get", Got: rec, Expires: at(61)}),
			[]string{"expires at 61.000s\n", "demanded:     the same, but expires at 1h0m1s–1h0m2s\n"}, nil,
		},
		"a lifetime that ended": {
			history(op{Method: "Put", Record: rec, TTL: second}, op{Method: "Get", Got: rec, Call: 20 * second}),
			[]string{"demanded:     NOT_FOUND, because the lifetime ended at 2.000–3.000s\n", "NOT_FOUND once the lifetime has ended"}, nil,
		},
		"a lifetime that did not end": {
			history(put, op{Method: "Get", Answer: "NOT_FOUND"}), []string{"which lives until 1h0m1s–1h0m2s\n"}, nil,
		},
		"an owner": {
			history(put, op{Method: "Replace", Record: rec, Owner: "x", Replaced: true}),
			[]string{"1.000–2.000s client 0: Put(", "with its lifetime unchanged, expecting", `demanded:     replaced: false, because its owner is ""` + "\n"}, []string{"for 0s"},
		},
		"an answer while other calls overlap": {
			history(put, op{Method: "Touch", Accessed: at(9), TTL: time.Hour, Call: 10 * second, Return: 13 * second}, op{Method: "Put", Record: other, TTL: time.Hour, Call: 11 * second, Return: 14 * second},
				op{Method: "Get", Got: rec, Call: 20 * second}),
			[]string{`subject "bob"`, "accessed 2026-01-02T03:00:05.000}, which lives until", "; or {", "accessed 2026-01-02T03:00:09.000}, which lives until"}, []string{"some order"},
		},
		"the first wrong answer, not one that a call explains that was still running": {
			history(op{Method: "Put", Record: rec, TTL: time.Hour, Call: second, Return: 30 * second}, op{Method: "Get", Got: rec, Call: 2 * second}, op{Method: "Get", Got: late, Call: 40 * second}),
			[]string{"the plugin:   {id \"s\", subject \"ada\", …, accessed 2026-01-02T03:00:09.000}\n"}, []string{"2.000–3.000s"},
		},
		"only the calls that the failure needs": {
			history(op{Method: "Put", Record: other, TTL: time.Hour}, op{Method: "Delete"}, put, op{Method: "Touch", Accessed: at(2), TTL: 2 * time.Hour}, op{Method: "Get", Got: rec}, op{Method: "Touch", Accessed: at(9), TTL: 29*24*time.Hour + 11*time.Hour},
				op{Method: "Replace", Record: other, Owner: "x"}, op{Method: "Get", Got: rec}, op{Method: "Delete"}),
			[]string{"   1  5.000–6.000s client 0: Put(", "   2  11.000–12.000s client 0: Touch(", ", for 29d11h0m0s) -> OK\n>  3  15.000–16.000s client 0: Get(", "demanded:     the same, but accessed"}, []string{"Delete", "Replace", "   4"},
		},
		"a value from an earlier call": {
			history(put, op{Method: "Put", Record: other, TTL: time.Hour}, op{Method: "Get", Got: rec}),
			[]string{"   1  1.000–2.000s client 0: Put({id \"s\", subject \"ada\"", ">  3  ", "the plugin:   {id \"s\", subject \"ada\", …}\n"}, nil,
		},
		"a call that took effect too late": {
			history(put, op{Method: "Put", Record: other, TTL: time.Hour, Answer: "unseen", Error: `UNAVAILABLE "gone"`, Return: 4739 * time.Millisecond}, op{Method: "Get", Got: rec}, op{Method: "Get", Got: other, Call: 7 * second}),
			[]string{`-> UNAVAILABLE "gone", so it takes effect before 4.739s or never`, "demanded:     the Put of line 2 to have no effect after 4.739s\n", `the contract: "it takes effect before its deadline plus 300 ms, or never"`}, nil,
		},
		"a batch that was refused and done": {
			history(put, op{Method: "Touch", Accessed: at(9), TTL: second, Answer: "INVALID_ARGUMENT", Call: 5 * second}, op{Method: "Touch", Accessed: at(9), TTL: -second, Answer: "INVALID_ARGUMENT", Call: 5 * second},
				op{Method: "Get", Got: late}),
			[]string{`Touch("s", last accessed 2026-01-02T03:00:09.000, for 1s; again, last accessed 2026-01-02T03:00:09.000, for -1s) -> INVALID_ARGUMENT`}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.history.Check()
			if err == nil {
				t.Fatal("the history fits the model")
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("there is no %q in\n%v", text, err)
				}
			}
			for _, text := range c.not {
				if strings.Contains(err.Error(), text) {
					t.Errorf("there is %q in\n%v", text, err)
				}
			}
		})
	}
}

func TestAReportShowsWhatTheKitDidAndWhatThePluginAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		property string
		lie      func(*store)
		says     []string
	}{
		"a call that should have been refused": {
			sessionstoretest.Refusing, touchesAll(func(c *call) error {
				if sessionstore.CheckTouch(c.batch) != nil {
					return nil
				}
				return c.rightTouch()
			}),
			[]string{") -> OK\n", "the plugin:   OK\n", "demanded:     INVALID_ARGUMENT\n"},
		},
		"the code of an error": {
			sessionstoretest.Sequential, removes(func(*call) error { return plugins.Unavailable(errors.New("too busy")) }),
			[]string{`-> UNAVAILABLE "unavailable: too busy", so it`, `the plugin:   UNAVAILABLE "unavailable: too busy"` + "\n"},
		},
		"an error of a call that should have succeeded in time": {
			sessionstoretest.Sequential, removes(func(*call) error { return context.DeadlineExceeded }), []string{`the plugin:   DEADLINE_EXCEEDED "context deadline exceeded" after `},
		},
		"a process that was killed": {
			sessionstoretest.Killed, func(s *store) { behind(s, "put") }, []string{"s kill -9\n", "Such a write survives the end of the process"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, p := range sessionstoretest.Properties() {
					if p.Name != c.property {
						continue
					}
					o := p.Judge(t.Context(), plugintest.Trial(kit.Normal), subject(c.lie))
					for _, text := range c.says {
						if o.Err == nil || !strings.Contains(o.Err.Error(), text) {
							t.Errorf("there is no %q in\n%v", text, o.Err)
						}
					}
				}
			})
		})
	}
}
