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

// Kind is what each client does repeatedly.
type Kind string

// The kinds of load.
const (
	Calls  Kind = "call"  // tools/call in an open session
	Lists  Kind = "list"  // tools/list in an open session
	Cycles Kind = "cycle" // open a session, call the tool, close the session
)

// Plan describes the load. A run ends after Duration or after Total requests, whichever is set and comes first.
type Plan struct {
	Kind        Kind
	Concurrency int // number of clients, each with its own connection and session
	Duration    time.Duration
	Total       int64
	Rate        float64 // requests per second, all clients together; 0 means as fast as the server responds
}

// Result is the result of a run.
type Result struct {
	Requests int64         `json:"requests"`
	Failed   int64         `json:"failed"`
	Error    string        `json:"error,omitempty"` // the first error
	Elapsed  time.Duration `json:"elapsedNs"`
	PerSec   float64       `json:"perSecond"`
	P50      time.Duration `json:"p50Ns"`
	P99      time.Duration `json:"p99Ns"`
	Max      time.Duration `json:"maxNs"`
}

// Run puts load on a target. Except for Cycles, sessions are opened before the clock starts and closed after it
// stops. The error is set only if the run could not start; failed requests are counted in the Result.
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

// open connects the clients. It also opens a session for each, unless that is part of the load.
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

// run is the state of a running plan.
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
			break // the state of its connection is unknown
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

// more reports whether the plan has another request, and counts it.
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
