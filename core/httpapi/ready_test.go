package httpapi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestReadinessFollowsTheChecksAndNamesTheOneThatFails(t *testing.T) {
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
	if r := h.do(t, probe); r.StatusCode != 200 || r.body != `{"status":"ready","checks":[{"name":"store","ok":true},{"name":"plugins","ok":true}]}` {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	h.do(t, probe)
	if runs.Load() != 1 {
		t.Errorf("two probes at once ran the check %d times", runs.Load())
	}
	broken.Store(true)
	h.await(t, "the fault is not shown", func() bool { return h.do(t, probe).StatusCode == 503 })
	r := h.do(t, probe)
	if !strings.Contains(r.body, `"not ready"`) || strings.Contains(r.body, "secret") || !strings.Contains(h.log.String(), "disk full") {
		t.Errorf("%s; log %s", r.body, h.log)
	}
	if r := h.do(t, call{method: "GET", path: "/livez", header: probe.header}); r.StatusCode != 200 {
		t.Errorf("/livez: %d", r.StatusCode)
	}
}

func TestAServerIsNotReadyBeforeItsListenerCloses(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.ShutdownDelay = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Shutdown(ctx) }()
	probe := call{method: "GET", path: "/readyz"}
	h.await(t, "it is ready", func() bool { return h.do(t, probe).StatusCode == 503 })
	if r := h.do(t, call{method: "GET", path: "/v1/apps"}); r.StatusCode != 200 {
		t.Errorf("a request meanwhile: %d %s", r.StatusCode, r.body)
	}
	cancel()
	<-done
}
