package apps

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

func TestAServerDoesNotStartASleepingAppWhoseListsAreKnown(t *testing.T) {
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

func TestAnAppStartsWithItsServerIfItsListsMayHaveChanged(t *testing.T) {
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

func TestADirectoryUsedInPlaceStartsWithItsServerOnlyIfItsFilesChanged(t *testing.T) {
	type place struct{ dir, outside string }
	write := func(t *testing.T, path, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	rewrite := func(file func(place) string) func(*testing.T, place) {
		return func(t *testing.T, p place) { // with the same size and modification time
			path := file(p)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, "0ther")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
	}
	main := func(p place) string { return filepath.Join(p.dir, "server", "main.js") }
	for name, c := range map[string]struct {
		before, running, after func(*testing.T, place)
		starts                 int
	}{
		"nothing":                    {starts: 1},
		"a file":                     {starts: 2, after: rewrite(main)},
		"a file while it is running": {starts: 2, running: rewrite(main)},
		"a new file":                 {starts: 2, after: func(t *testing.T, p place) { write(t, filepath.Join(p.dir, "server", "new.js"), "") }},
		"its program":                {starts: 2, after: rewrite(func(p place) string { return filepath.Join(p.outside, "program") })},
		"a script in its command":    {starts: 2, after: rewrite(func(p place) string { return filepath.Join(p.outside, "script") })},
		"the target of a link":       {starts: 2, after: rewrite(func(p place) string { return filepath.Join(p.outside, "linked") })},
		"a link to a directory": {starts: 2, before: func(t *testing.T, p place) {
			if err := os.Symlink(p.outside, filepath.Join(p.dir, "package")); err != nil {
				t.Fatal(err)
			}
		}},
		"a link within the directory": {starts: 1, before: func(t *testing.T, p place) {
			if err := os.Symlink("server", filepath.Join(p.dir, "package")); err != nil {
				t.Fatal(err)
			}
		}},
		"the directory that a link points to": {starts: 2, before: func(t *testing.T, p place) {
			if err := errors.Join(os.Rename(p.dir, p.dir+"-1"), os.Symlink(p.dir+"-1", p.dir)); err != nil {
				t.Fatal(err)
			}
		}, after: func(t *testing.T, p place) {
			if err := errors.Join(os.CopyFS(p.dir+"-2", os.DirFS(p.dir+"-1")), os.Remove(p.dir), os.Symlink(p.dir+"-2", p.dir)); err != nil {
				t.Fatal(err)
			}
		}},
		"too many files": {starts: 2, before: func(t *testing.T, p place) {
			for i := range 20_000 {
				if err := os.Symlink("server", filepath.Join(p.dir, strconv.Itoa(i))); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{dir: filepath.Join(t.TempDir(), "app"), outside: t.TempDir()}
			for _, path := range []string{main(p), filepath.Join(p.outside, "program"), filepath.Join(p.outside, "script"), filepath.Join(p.outside, "linked")} {
				write(t, path, "first")
			}
			if err := os.Symlink(filepath.Join(p.outside, "linked"), filepath.Join(p.dir, "linked.js")); err != nil {
				t.Fatal(err)
			}
			at := func(change func(*testing.T, place)) {
				if change != nil {
					change(t, p)
				}
			}
			at(c.before)
			synctest.Test(t, func(t *testing.T) {
				r := checked("notes")
				r.Sum, r.Dir = "", p.dir
				r.Manifest = fmt.Appendf(nil, `{"manifest_version":"0.3","name":"notes","version":"1","description":"d","author":{"name":"a"},
					"server":{"type":"binary","entry_point":"x","mcp_config":{"command":%q,"args":[%q,"${__dirname}","/nowhere","--x"]}}}`,
					filepath.Join(p.outside, "program"), filepath.Join(p.outside, "script"))
				m := &memoryApp{tools: []string{"echo"}}
				records := newMemoryRecords(r)
				before := serverOf(t, m, records, func(*Options) {})
				at(c.running)
				pass(t, 2*idleLimit)
				expect(t, "asleep before", asleep(t, before, "notes"), true)
				end(t, before)
				at(c.after)
				y := serverOf(t, m, records, func(*Options) {})
				expect(t, "starts", len(m.started()), c.starts)
				expect(t, "asleep", asleep(t, y, "notes"), c.starts == 1)
				expect(t, "state", state(t, y, "notes"), core.StateRunning)
				end(t, y)
			})
		})
	}
}

func TestKeptListsAreByteForByteTheSame(t *testing.T) {
	raw := json.RawMessage("{\"name\": \"a\",  \"title\":\"<b> \u2028\", \"name\":\"a\"}")
	r := newRecorder(nil, "")
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
