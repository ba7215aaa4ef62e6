package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

const (
	sleepers = 300 // apps that may sleep
	inUse    = 5   // apps that are called before memory is measured
	maxAwake = 10  // apps that may be awake while all are called
)

// sleep measures what sleeping apps save, and what it costs to wake them.
func (b *bench) sleep(ctx context.Context) error {
	apps, calls, measureWaking := sleepers, 10_000, 30
	if b.o.Quick {
		apps, calls, measureWaking = 30, 300, 6
	}
	s := service{name: "sleep", bundle: sdkBundle, apps: apps, sandbox: map[string]any{"processes": fewProcesses}}
	if _, err := b.crowdAtRest(ctx, s); err != nil { // the first start stores the apps' lists
		return err
	}
	asleep, err := b.crowdAtRest(ctx, s)
	if err != nil {
		return err
	}
	s.idle = "never"
	awake, err := b.crowdAtRest(ctx, s)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d apps, %d in use: ", apps, inUse)
	b.limit(what+"memory against idle: never", 0.1, "", asleep.memory/awake.memory, fmt.Sprintf("%.0f MiB", asleep.memory), fmt.Sprintf("%.0f MiB (never)", awake.memory))
	b.limit(what+"tasks against idle: never", 0.15, "", asleep.tasks/awake.tasks, fmt.Sprintf("%.0f", asleep.tasks), fmt.Sprintf("%.0f (never)", awake.tasks))
	b.limit(what+"start to the first list with all tools", 3, "s", asleep.ready.Seconds(), fmt.Sprintf("%.2f s", asleep.ready.Seconds()), fmt.Sprintf("%.1f s (never)", awake.ready.Seconds()))
	s.idle, s.maxAwake = "", maxAwake
	p, err := b.startService(ctx, b.o.Service, s)
	if err != nil {
		return err
	}
	begin := time.Now()
	failed, err := callAtRandom(ctx, p.url, apps, calls)
	what = fmt.Sprintf("%d calls to %d apps in random order, %d awake: ", calls, apps, maxAwake)
	b.limit(what+"failed", 0, "", float64(failed), fmt.Sprintf("%d in %.0f s", failed, time.Since(begin).Seconds()), "")
	if err != nil {
		return err
	}
	return b.measureWaking(ctx, p.url, measureWaking)
}

// crowd is the process tree of a server with many apps.
type crowd struct {
	memory, tasks float64 // MiB, number
	ready         time.Duration
}

// crowdAtRest starts a server, waits until it lists the tools of all apps, calls a few of them, and measures the tree
// at rest.
func (b *bench) crowdAtRest(ctx context.Context, s service) (c crowd, err error) {
	defer b.stopAll()
	begin := time.Now()
	p, err := b.startService(ctx, b.o.Service, s)
	if err != nil {
		return c, err
	}
	client, err := openClient(p.url)
	if err != nil {
		return c, err
	}
	defer client.Hangup()
	if err := listed(ctx, client, s.apps); err != nil {
		return c, err
	}
	c.ready = time.Since(begin)
	for n := range inUse {
		if err := callApp(client, appName(n)); err != nil {
			return c, err
		}
	}
	time.Sleep(settleTime)
	for _, pid := range treeOf(p.cmd.Process.Pid) {
		memory, err := memoryOf(pid, "Pss:")
		if err != nil {
			return c, err
		}
		c.memory, c.tasks = c.memory+memory, c.tasks+tasksOf(pid)
	}
	_, _ = fmt.Fprintf(b.o.Log, "%d apps, idle %q: ready after %s, %.0f MiB, %.0f tasks\n", s.apps, s.idle, c.ready.Round(time.Millisecond), c.memory, c.tasks)
	return c, nil
}

// listed waits until the tools of all apps are listed.
func listed(ctx context.Context, client *load.Client, apps int) error {
	limit, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for limit.Err() == nil {
		if err := client.List(); err != nil {
			return err
		}
		if bytes.Count(client.Answer(), []byte(`__echo"`)) >= apps {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the tools of %d apps are not listed: %w", apps, limit.Err())
}

func openClient(url string) (*load.Client, error) {
	client, err := load.Dial(serviceTarget(url, ""))
	if err != nil {
		return nil, err
	}
	return client, client.Open()
}

func callApp(client *load.Client, name string) error {
	return client.Ask("tools/call", fmt.Appendf(nil, `{"name":"%s__echo","arguments":{"text":"hello"}}`, name))
}

// callAtRandom makes calls with four clients. It returns how many failed, and the first error.
func callAtRandom(ctx context.Context, url string, apps, calls int) (failed int64, err error) {
	var left, wrong atomic.Int64
	left.Store(int64(calls))
	var first atomic.Pointer[error]
	var clients sync.WaitGroup
	for i := range uint64(4) {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(i, i)) //nolint:gosec // the same order in each run
			client, err := openClient(url)
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				if err == nil {
					err = callApp(client, appName(random.IntN(apps)))
				}
				if err != nil {
					wrong.Add(1)
					first.CompareAndSwap(nil, &err)
					client, err = openClient(url)
				}
			}
		})
	}
	clients.Wait()
	if err := first.Load(); err != nil {
		return wrong.Load(), *err
	}
	return wrong.Load(), ctx.Err()
}

// measureWaking alternates between calls that wake an app and starts of the same program alone, and compares them.
func (b *bench) measureWaking(ctx context.Context, url string, n int) error {
	client, err := openClient(url)
	if err != nil {
		return err
	}
	defer client.Hangup()
	all, err := listedApps(ctx, strings.TrimSuffix(url, "/mcp")+"/v1/apps")
	asleep := slices.DeleteFunc(all, func(a listedApp) bool { return !a.Asleep })
	if err != nil || len(asleep) < n {
		return errors.Join(fmt.Errorf("%d apps are asleep", len(asleep)), err)
	}
	var wake, own, ratios []float64
	for _, app := range asleep[:n] {
		alone, err := b.bundleStart(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := callApp(client, app.Name); err != nil {
			return err
		}
		w, o := milliseconds(time.Since(begin)), milliseconds(alone)
		wake, own, ratios = append(wake, w), append(own, o), append(ratios, w/(o+50))
	}
	b.limit("a call that wakes its app, against the app's own start + 50 ms", 1, "", median(ratios), fmt.Sprintf("%.0f ms", median(wake)), fmt.Sprintf("%.0f ms (bundle alone)", median(own)))
	return nil
}
