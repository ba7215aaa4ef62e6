package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

// quickApps answers every call immediately and records nothing.
type quickApps struct {
	fakeapps.Apps
	result json.RawMessage
}

func (q *quickApps) Call(context.Context, string, string, *interact.Call) (json.RawMessage, error) {
	return q.result, nil
}

// largeNamespace returns a namespace with 300 tools.
func largeNamespace() *tools.Namespace {
	offer := &core.Offer{}
	for i := range 300 {
		name := fmt.Sprintf("tool-%d", i)
		offer.Tools = append(offer.Tools, tool("bench", name, `{"name":"`+name+`","description":"`+fmt.Sprintf("%0200d", i)+`","inputSchema":{"type":"object"}}`))
	}
	q := &quickApps{result: json.RawMessage(`{"content":[{"type":"text","text":"x"}]}`)}
	q.SetOffer("", offer)
	n := tools.New(tools.Options{Apps: q, Events: &nobody{}, Features: config.Features{}})
	n.Add(system("status", false), system("users", true), system("manage_apps", false))
	return n
}

type nobody struct{}

func (nobody) Publish(core.Event) {}

// BenchmarkCall measures the overhead of the namespace per call.
func BenchmarkCall(b *testing.B) {
	n, c := largeNamespace(), caller("ws_a", core.RoleMember)
	call := tools.Call{Name: "bench__tool-7", Arguments: json.RawMessage(`{"text":"x"}`), Meta: json.RawMessage(`{"progressToken":1}`), Agent: true}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := n.Call(b.Context(), c, call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList compares the cached JSON list with marshaling the list each time.
func BenchmarkList(b *testing.B) {
	n, c := largeNamespace(), caller("ws_a", core.RoleMember)
	b.Run("once", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = n.ListJSON(c, tools.From{}, core.KindTools)
		}
	})
	b.Run("each time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			size := 0
			for _, t := range n.List(c) {
				size += len(t.Raw)
			}
		}
	})
}
