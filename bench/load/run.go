package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what each client does again and again.
type Kind string

// The kinds of load.
const (
	Calls  Kind = "call"  // tools/call in a session that is open
	Lists  Kind = "list"  // tools/list in a session that is open
	Cycles Kind = "cycle" // open a session, call, close it
)

// Plan is how a target is loaded. It ends after Duration or Total requests, whichever is set and
// comes first.
type Plan struct {
	Kind        Kind
	Concurrency int // clients, each with its own connection and session
	Duration    time.Duration
	Total       int64
	Rate        float64 // requests per second over all clients; 0 means as many as the server answers
}

// Result is what came of a plan.
type Result struct {
	Requests int64         `json:"requests"`
	Failed   int64         `json:"failed"`
	Error    string        `json:"error,omitempty"` // the first one
	Elapsed  time.Duration `json:"elapsedNs"`
	PerSec   float64       `json:"perSecond"`
	P50      time.Duration `json:"p50Ns"`
	P99      time.Duration `json:"p99Ns"`
	Max      time.Duration `json:"maxNs"`
}

// Run loads a target. Sessions are opened before the clock starts, but for Cycles, and closed after
// it. An error is one that kept the run from starting; failed requests are in the Result.
func Run(ctx context.Context, t Target, p Plan) (Result, error) {
	if p.Concurrency < 1 || p.Duration <= 0 && p.Total <= 0 || p.Rate < 0 {
		return Result{}, errors.New("a plan needs a concurrency, a duration or a number of requests, and a rate that is not negative")
	}
	clients, err := open(t, p)
	defer func() {
		for _, c := range clients {
			_ = c.Close()
			c.Hangup()
		}
	}()
	if err != nil {
		return Result{}, err
	}
	if p.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Duration)
		defer cancel()
	}
	r := &run{plan: p, done: ctx.Done()}
	start := time.Now()
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() { r.loop(c, newSchedule(start, i, p)) })
	}
	all.Wait()
	return r.result(time.Since(start)), nil
}

// open connects the clients, each with a session unless the load is to open them.
func open(t Target, p Plan) ([]*Client, error) {
	var clients []*Client
	for range p.Concurrency {
		c, err := Dial(t)
		if err != nil {
			return clients, fmt.Errorf("connect to %s: %w", t.URL, err)
		}
		clients = append(clients, c)
		if p.Kind == Cycles {
			continue
		}
		if err := c.Open(); err != nil {
			return clients, fmt.Errorf("open a session at %s: %w", t.URL, err)
		}
	}
	return clients, nil
}

// run is a plan being carried out.
type run struct {
	plan Plan
	done <-chan struct{}
	sent atomic.Int64

	mu     sync.Mutex
	times  []time.Duration
	failed int64
	first  error
}

func (r *run) loop(c *Client, due *schedule) {
	times := make([]time.Duration, 0, 1<<14)
	var failed int64
	var first error
	for r.more() {
		start, ok := due.wait(r.done)
		if !ok {
			break
		}
		if err := r.once(c); err != nil {
			failed++
			first = errors.Join(first, err)
			break // its connection is in an unknown state
		}
		times = append(times, time.Since(start))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times, r.failed = append(r.times, times...), r.failed+failed
	if r.first == nil {
		r.first = first
	}
}

// more takes the next request's place in the plan.
func (r *run) more() bool {
	select {
	case <-r.done:
		return false
	default:
	}
	return r.plan.Total <= 0 || r.sent.Add(1) <= r.plan.Total
}

func (r *run) once(c *Client) error {
	switch r.plan.Kind {
	case Lists:
		return c.List()
	case Cycles:
		if err := c.Open(); err != nil {
			return err
		}
		if err := c.Call(); err != nil {
			return err
		}
		return c.Close()
	default:
		return c.Call()
	}
}

func (r *run) result(elapsed time.Duration) Result {
	slices.Sort(r.times)
	res := Result{Requests: int64(len(r.times)), Failed: r.failed, Elapsed: elapsed, PerSec: float64(len(r.times)) / elapsed.Seconds()}
	if r.first != nil {
		res.Error = r.first.Error()
	}
	if n := len(r.times); n > 0 {
		res.P50, res.P99, res.Max = r.times[n/2], r.times[n*99/100], r.times[n-1]
	}
	return res
}
