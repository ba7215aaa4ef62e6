package apps

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// BenchmarkCall measures the cost of the manager itself: the app is in memory and answers immediately.
func BenchmarkCall(b *testing.B) {
	m := &memoryApp{}
	y := New(Options{Home: b.TempDir(), Records: newMemoryRecords(record("notes", true)), Events: newMemoryEvents(), Logger: hclog.NewNullLogger()})
	y.start = m.launch
	if err := y.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer y.Close(b.Context())
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"x"}}`)
	for name, c := range map[string]*interact.Call{"alone": {Request: link.Request{Method: "x", Params: params}}, "with a session": {Request: link.Request{Method: "x", Params: params, Notify: func(rpc.Notification) {}}, Client: interact.NewClient("s", false, canElicit), Asker: saysWord("x")}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Params = params
				if _, err := y.Call(b.Context(), core.DefaultWorkspaceID, "notes", c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
