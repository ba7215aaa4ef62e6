package access

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// BenchmarkSteadyState measures the cost of each request on /mcp in this package: a known token and a
// workspace. It must not show any calls to the adapter or the database.
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
