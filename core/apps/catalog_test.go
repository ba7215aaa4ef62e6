package apps

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/offer"
)

func names(tools []core.Tool) string {
	var out []string
	for _, t := range tools {
		out = append(out, t.FullName())
	}
	return strings.Join(out, " ")
}

func TestToolsAreListedWhileTheirAppRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"write", "read"}}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true), record("alpha", true)))
		var changes atomic.Int32 // two apps start at once
		defer y.Watch(ws, func(core.Kind) { changes.Add(1) })()
		defer y.Watch("ws_other", func(core.Kind) { t.Error("the watcher of another workspace was called") })()
		open(t, y)
		synctest.Wait()
		both := "alpha__write alpha__read notes__write notes__read"
		expect(t, "tools by server name, then in the app's order", names(y.Tools(ws)), both)
		expect(t, "tool count", y.List(ws)[0].ToolCount, 2)
		if n := changes.Swap(0); n != 1 && n != 2 {
			t.Errorf("two apps that started together caused %d changes", n)
		}
		first := y.Tools(ws)
		if unsafe.SliceData(first) != unsafe.SliceData(y.Tools(ws)) {
			t.Error("the snapshot was replaced although nothing changed")
		}
		m.set(func(m *memoryApp) { m.takes = time.Second })
		m.kill()
		synctest.Wait()
		expect(t, "tools while one app restarts", names(y.Tools(ws)), both)
		wait(t.Context(), 2*time.Second)
		expect(t, "changes after a restart with the same tools", changes.Load(), 0)
		if _, err := y.Stop(t.Context(), ws, "alpha"); err != nil {
			t.Fatal(err)
		}
		expect(t, "tools after a stop", names(y.Tools(ws)), "notes__write notes__read")
		expect(t, "tool count of a stopped app", y.List(ws)[0].ToolCount, 0)
		if _, err := y.Uninstall(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		expect(t, "tools after all apps were uninstalled", len(y.Tools(ws)), 0)
		expect(t, "changes", changes.Load(), 2)
	})
}

func TestAChangedListIsReadAtOnceButRepeatedAnnouncementsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"one"}}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		changes := 0
		stop := y.Watch(ws, func(core.Kind) {
			changes++
			expect(t, "tools that a watcher sees", names(y.Tools(ws)), "notes__one notes__two")
		})
		m.set(func(m *memoryApp) { m.tools = append(m.tools, "two") })
		before := time.Now()
		m.announce()
		synctest.Wait()
		expect(t, "changes", changes, 1)
		expect(t, "time", time.Since(before), 0)
		for range 50 {
			m.announce()
			wait(t.Context(), 10*time.Millisecond)
		}
		expect(t, "changes when nothing differs", changes, 1)
		stop()
		m.set(func(m *memoryApp) { m.tools = nil })
		m.announce()
		wait(t.Context(), time.Second)
		expect(t, "tools", len(y.Tools(ws)), 0)
		expect(t, "changes after the watch was stopped", changes, 1)
	})
}

func TestAnAppShownAsRunningHasItsTools(t *testing.T) {
	var running []core.Tool
	c := offer.NewCatalog(func(string) *core.Offer { return &core.Offer{Tools: running} })
	changes := 0
	defer c.Watch(ws, func(core.Kind) { changes++ })()
	shown := c.BeginChange(ws)
	expect(t, "tools before the view is shown", len(c.Offer(ws).Tools), 0)
	running = []core.Tool{{Server: "notes", Name: "one", Raw: json.RawMessage(`{"name":"one"}`)}}
	expect(t, "tools as soon as it is", names(c.Offer(ws).Tools), "notes__one")
	shown()
	expect(t, "tools afterwards", names(c.Offer(ws).Tools), "notes__one")
	expect(t, "calls of the watcher", changes, 1)
}
