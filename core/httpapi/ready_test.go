package httpapi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadinessReportsTheFailingCheck(t *testing.T) {
	var broken atomic.Bool
	var runs atomic.Int64
	h := open(t, newAccess(), func(o *Options) {
		o.Checks = []Check{
			{Name: "store", Run: func(context.Context) error {
				runs.Add(1)
				if broken.Load() {
					return errors.New("disk full at /secret/path")
				}
				return nil
			}},
			{Name: "plugins", Run: func(context.Context) error { return nil }},
		}
	})
	probe := call{method: "GET", path: "/readyz", header: map[string]string{"Authorization": anonymous}}
	began := time.Now()
	if r := h.do(t, probe); r.StatusCode != 200 || r.body != `{"status":"ready","checks":[{"name":"store","ok":true},{"name":"plugins","ok":true}]}` {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	h.do(t, probe)
	if n := runs.Load(); n == 0 || n > 1 && time.Since(began) < readyCache {
		t.Errorf("two concurrent probes ran the check %d times", n)
	}
	broken.Store(true)
	h.await(t, "the fault is not reported", func() bool { return h.do(t, probe).StatusCode == 503 })
	if reasons := h.Readiness(); reasons[0].Name != "store" || reasons[0].Err == nil || reasons[1].Err != nil {
		t.Errorf("the reasons are %v", reasons)
	}
	r := h.do(t, probe)
	if !strings.Contains(r.body, `"not ready"`) || strings.Contains(r.body, "secret") || !strings.Contains(h.log.String(), "disk full") {
		t.Errorf("%s; log %s", r.body, h.log)
	}
	if r := h.do(t, call{method: "GET", path: "/livez", header: probe.header}); r.StatusCode != 200 {
		t.Errorf("/livez: %d", r.StatusCode)
	}
}

func TestEveryFaultIsReportedWithinFiveSeconds(t *testing.T) {
	faults := map[string]func(context.Context) error{
		"a check that fails": func(context.Context) error { return errors.New("no route to host") },
		"a check that hangs until its context ends": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"a check that hangs for longer": func(context.Context) error {
			<-time.After(time.Minute)
			return nil
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				var running, most atomic.Int64
				changes := 0
				r := newReadiness([]Check{{Name: "database", Run: func(ctx context.Context) error {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					if broken.Load() {
						return fault(ctx)
					}
					return nil
				}}}, func(CheckState) { changes++ })
				if r.run(t.Context())[0].Err != nil {
					t.Fatal("the check failed before the fault")
				}
				broken.Store(true)
				began := time.Now()
				for r.run(t.Context())[0].Err == nil {
					<-time.After(100 * time.Millisecond)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("reported after %v", took)
				}
				for range 5 { // later probes neither start a second run nor log anything
					<-time.After(readyCache)
					r.run(t.Context())
				}
				if most.Load() != 1 || changes > 2 {
					t.Errorf("%d concurrent runs, %d changes logged", most.Load(), changes)
				}
				broken.Store(false)
				<-time.After(2 * time.Minute)
				r.run(t.Context()) // the hung run has returned
				<-time.After(readyCache)
				if err := r.run(t.Context())[0].Err; err != nil {
					t.Errorf("after the fault: %v", err)
				}
			})
		})
	}
}

func TestAServerIsNotReadyBeforeItsListenerCloses(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.ShutdownDelay = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Shutdown(ctx) }()
	probe := call{method: "GET", path: "/readyz"}
	h.await(t, "the server is still ready", func() bool { return h.do(t, probe).StatusCode == 503 })
	if r := h.do(t, call{method: "GET", path: "/v1/apps"}); r.StatusCode != 200 || !r.Close {
		t.Errorf("a request during the delay: %d %s; its connection is closed: %v", r.StatusCode, r.body, r.Close)
	}
	cancel()
	<-done
}
