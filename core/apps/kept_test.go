package apps

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// checked returns a running app whose files are checked.
func checked(name string) core.Installation {
	r := record(name, true)
	r.ID, r.Sum = "in_"+name, "sum"
	return r
}

// serverOf starts a server with these records. Its apps may sleep.
func serverOf(t *testing.T, m *memoryApp, records *memoryRecords, change func(*Options)) *Manager {
	t.Helper()
	y, _ := managerOf(t, m, records)
	y.o.Idle = idleLimit
	change(&y.o)
	open(t, y)
	synctest.Wait()
	return y
}

func end(t *testing.T, y *Manager) {
	t.Helper()
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAServerStartsNoAppThatMaySleepAndWhoseListsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo", "strange name"}}
		records := newMemoryRecords(checked("notes"))
		before := serverOf(t, m, records, func(*Options) {})
		want := fmt.Sprint(before.Tools(ws), before.Instructions(ws))
		end(t, before)
		expect(t, "starts", len(m.started()), 1)

		y := serverOf(t, m, records, func(*Options) {})
		expect(t, "starts with the second server", len(m.started()), 1)
		expect(t, "asleep", asleep(t, y, "notes"), true)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		expect(t, "lists", fmt.Sprint(y.Tools(ws), y.Instructions(ws)), want)
		if err := use(t, y, "notes"); err != nil {
			t.Fatalf("the first call: %v", err)
		}
		expect(t, "starts with the call", len(m.started()), 2)
		expect(t, "asleep after the call", asleep(t, y, "notes"), false)
		end(t, y)
	})
}

func TestAnAppStartsWithItsServerWhenWhatDecidesItsListsChanged(t *testing.T) {
	for name, change := range map[string]func(r *core.Installation, o *Options){
		"its files":      func(r *core.Installation, _ *Options) { r.Sum = "other" },
		"no known files": func(r *core.Installation, _ *Options) { r.Sum = "" },
		"its settings":   func(r *core.Installation, _ *Options) { r.Env = map[string]core.Secret{"COLOUR": "blue"} },
		"its permissions": func(r *core.Installation, _ *Options) {
			r.Permissions = []core.Permission{{Access: core.Access{Kind: "network", Target: "a.example:443"}}}
		},
		"another installation": func(r *core.Installation, _ *Options) { r.ID = "in_other" },
		"its sandbox":          func(_ *core.Installation, o *Options) { o.Sandbox = config.Sandbox{Read: []string{"/data"}} },
		"the server":           func(_ *core.Installation, o *Options) { o.Version = "2" },
		"it never sleeps":      func(_ *core.Installation, o *Options) { o.Idle = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{tools: []string{"echo"}}
				records := newMemoryRecords(checked("notes"))
				end(t, serverOf(t, m, records, func(*Options) {}))
				y := serverOf(t, m, records, func(o *Options) {
					for key, r := range records.rows {
						change(&r, o)
						records.rows[key] = r
					}
				})
				expect(t, "starts", len(m.started()), 2)
				expect(t, "asleep", asleep(t, y, "notes"), false)
				end(t, y)
			})
		})
	}
}

func TestKeptListsAreTheSameBytes(t *testing.T) {
	raw := json.RawMessage("{\"name\": \"a\",  \"title\":\"<b> \u2028\", \"name\":\"a\"}")
	r := newRecorder(nil)
	r.lists[core.KindTools] = []json.RawMessage{raw}
	kept, complete := r.kept()
	expect(t, "complete with one list", complete, false)
	stored, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	var again keptLists
	if err := json.Unmarshal(stored, &again); err != nil {
		t.Fatal(err)
	}
	list, err := again.List(t.Context(), core.KindTools)
	if err != nil || len(list) != 1 || string(list[0]) != string(raw) {
		t.Errorf("%s, %v", list, err)
	}
}
