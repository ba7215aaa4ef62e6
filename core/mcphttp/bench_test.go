package mcphttp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// inUse returns the bytes that the process uses for heap and stacks.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// bench starts a rig for a benchmark. A rig needs a testing.T, so bench runs a test inside the benchmark.
func bench(b *testing.B, run func(r *rig)) {
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
		run(start(t, func(o *Options) { o.MaxSessions = 5000 }))
	}}})
	if !ok {
		b.Fatal("the rig failed")
	}
}

func BenchmarkMemoryOfASession(b *testing.B) {
	const sessions = 1000
	bench(b, func(r *rig) {
		r.join(alice)
		for b.Loop() {
			before := inUse()
			var opened []who
			for range sessions {
				opened = append(opened, r.join(alice))
			}
			b.ReportMetric(float64(inUse()-before)/sessions, "B/session")
			for _, w := range opened {
				r.say("DELETE", w, "")
			}
		}
	})
}

func BenchmarkMemoryOfAnIdleStream(b *testing.B) {
	const streams = 1000
	bench(b, func(r *rig) {
		var opened []who
		for range streams {
			opened = append(opened, r.join(alice))
		}
		for b.Loop() {
			before, goroutines := inUse(), runtime.NumGoroutine()
			var conns []io.Closer
			for _, w := range opened {
				conn := r.dial()
				fmt.Fprint(conn, r.raw("GET", w, ""))
				if _, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil {
					r.Fatal(err)
				}
				conns = append(conns, conn)
			}
			b.ReportMetric(float64(inUse()-before)/streams, "B/stream")
			b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/streams, "goroutines/stream")
			for _, c := range conns {
				c.Close()
			}
		}
	})
}

func BenchmarkCall(b *testing.B) {
	bench(b, func(r *rig) {
		reference := oracle(r.T)
		for _, side := range []struct{ name, url string }{{"ours", r.url + "/mcp"}, {"sdk", reference}} {
			session := send(r.T, side.url, "POST", hello("2025-11-25"), "").Header.Get("Mcp-Session-Id")
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			b.Run(side.name, func(b *testing.B) {
				b.ReportAllocs()
				var last atomic.Int64
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						req, _ := http.NewRequest("POST", side.url, strings.NewReader(callBody(last.Add(1), "demo__plain", `{}`)))
						req.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"},
							"Authorization": {"Bearer alice"}, "X-Workspace-Id": {"ws_one"}, "Mcp-Session-Id": {session}}
						resp, err := client.Do(req)
						if err != nil || resp.StatusCode != 200 {
							b.Error(resp, err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				})
			})
			client.CloseIdleConnections()
		}
	})
}
