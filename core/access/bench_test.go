package access

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// BenchmarkSteadyState is what each request on /mcp pays here: a token that is known, and a
// workspace. It must show no call of the adapter and none of the database.
func BenchmarkSteadyState(b *testing.B) {
	p := newProvider("https://idp", "alice")
	a := New(Options{Providers: only(p), Users: memory{}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id, err := a.MCP(b.Context(), "token-of-alice", "")
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := a.Caller(b.Context(), id, ""); core.CodeOf(err) != core.CodeWorkspaceDenied {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(p.calls.Load()), "adapter-calls")
}
