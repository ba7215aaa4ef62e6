package operations

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// balancer sends requests to the ready servers, like a load balancer.
type balancer struct {
	mu      sync.Mutex
	servers map[string]string // the ready servers, from name to URL
	refused []error
	served  int
	noted   chan string // the names of servers that are no longer ready
}

func (b *balancer) add(name, url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[name] = url
}

// run probes each server until ctx is done. It sends each ready server a request on a new connection.
func (b *balancer) run(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(url string) int {
		res, err := client.Get(url)
		if err != nil {
			b.refused = append(b.refused, err)
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		b.mu.Lock()
		for name, url := range b.servers {
			if get(url+"/readyz") != http.StatusOK {
				delete(b.servers, name)
				b.noted <- name
			} else if get(url+"/v1/apps") == http.StatusOK {
				b.served++
			}
		}
		b.mu.Unlock()
	}
}

func TestARollingRestartRefusesNoConnections(t *testing.T) {
	t.Parallel()
	settings := harness.Config("http: {shutdownDelaySeconds: 5}\n")
	servers := map[string]*harness.Server{"a": harness.Serve(t, settings), "b": harness.Serve(t, settings)}
	b := &balancer{servers: map[string]string{}, noted: make(chan string, 100)}
	for name, s := range servers {
		b.add(name, s.URL)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.run(ctx) })
	for name, s := range servers {
		if status := s.Stop(); status != 0 {
			t.Errorf("server %s exited with status %d", name, status)
		}
		if noted := <-b.noted; noted != name {
			t.Errorf("server %s was no longer ready, but %s was stopped", noted, name)
		}
		s.Start()
		b.add(name, s.URL)
	}
	cancel()
	running.Wait()
	if len(b.refused) > 0 || len(b.noted) > 0 || b.served == 0 {
		t.Errorf("%d requests were served, %d failed: %v", b.served, len(b.refused), b.refused)
	}
}
