package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

func load() []Check {
	return []Check{
		{Name: "a message of 15 MiB is taken in", Contract: "A plugin accepts messages of up to 16 MiB", Run: with(takesLargeMessages)},
		{Name: "100 calls at once are all answered", Contract: "at least 100 calls at once", Run: with(answersHundred)},
		{Name: "10,000 calls leave no descriptor open, no memory in use and nothing on standard output", Contract: "The use of memory and file descriptors does not grow with the number of calls", Run: with(leaksNothing)},
	}
}

// kindCall returns the subject's probe over a connection of its own.
func (p *process) kindCall(s Subject) (func(ctx context.Context, about string) error, error) {
	conn, err := p.dial(true, p.server)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, about string) error { return s.Probe(ctx, conn, about) }, nil
}

// callKind makes one cheap call of the kind's own service.
func callKind(ctx context.Context, s Subject, p *process) error {
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	err = call(ctx, "x")
	answers := []codes.Code{codes.OK, codes.NotFound, codes.InvalidArgument, codes.Unauthenticated, codes.Unavailable}
	if !slices.Contains(answers, status.Code(err)) {
		return kit.Failf("a call of the kind's own service failed: %w", err)
	}
	return nil
}

func takesLargeMessages(ctx context.Context, _ Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	large := append([]byte(`{"noPluginHasThisSetting": "`), bytes.Repeat([]byte("x"), 15<<20)...)
	if _, err := configure(ctx, service, p, append(large, `"}`...)); err != nil {
		return kit.Failf("settings of 15 MiB: %w", err)
	}
	return nil
}

func answersHundred(ctx context.Context, s Subject, p *process) error {
	service, err := p.service()
	if err != nil {
		return err
	}
	if _, err := configure(ctx, service, p, s.Settings); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	failed := make([]error, 100)
	var wg sync.WaitGroup
	for i := range failed {
		wg.Go(func() { _, failed[i] = service.Info(ctx, &pluginv1.InfoRequest{}) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return kit.Failf("of 100 calls at once, one failed or took more than 10 s: %w", err)
	}
	return nil
}

// usage is what a process uses of the machine.
type usage struct{ descriptors, resident int }

// usageOf reads the usage of a process.
func usageOf(pid int) (u usage, err error) {
	if u.descriptors, err = descriptors(pid); err != nil {
		return u, err
	}
	u.resident, err = resident(pid)
	return u, err
}

// How much more than before 10,000 calls a process may use after them.
const (
	allowedDescriptors = 50
	allowedResident    = 48 << 20 // bytes
)

// grownFrom returns what a usage has too much since before, or nil.
func (u usage) grownFrom(before usage) error {
	if u.descriptors-before.descriptors > allowedDescriptors {
		return kit.Failf("10,000 calls took the process from %d to %d open descriptors", before.descriptors, u.descriptors)
	}
	if u.resident-before.resident > allowedResident {
		return kit.Failf("10,000 calls took the process from %d to %d bytes of resident memory", before.resident, u.resident)
	}
	return nil
}

// leaksNothing compares the usage of the process before and after 10,000 calls.
func leaksNothing(ctx context.Context, s Subject, p *process) error {
	if _, err := usageOf(p.cmd.Process.Pid); err != nil {
		return kit.Skip("this system does not show what a process uses: %v", err)
	}
	service, err := p.service()
	if err != nil {
		return err
	}
	if _, err := configure(ctx, service, p, s.Settings); err != nil {
		return err
	}
	if err := callOften(ctx, service, s, p, 1000); err != nil { // until pools and buffers have their size
		return err
	}
	before, err := usageOf(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := callOften(ctx, service, s, p, 10_000); err != nil {
		return err
	}
	var grown error
	for range 20 { // what a garbage collector or a close takes a moment for
		after, err := usageOf(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		if grown = after.grownFrom(before); grown == nil {
			return p.printedNothing()
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return grown
}

// callOften makes n calls, several at a time.
func callOften(ctx context.Context, service pluginv1.PluginServiceClient, s Subject, p *process, n int) error {
	const callers = 8
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	every := 2 // call of the kind's own service
	if s.Kind == plugins.KindRegistry {
		every = 100 // it may ask a server that others use too
	}
	failed := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range n / callers {
				var err error
				switch {
				case j%10 == 1:
					_, err = ask(ctx, service, p, false, s.Settings)
				case j%every == 0:
					_ = call(ctx, strconv.Itoa(i)+"-"+strconv.Itoa(j)) // another check judges the answer
				default:
					_, err = service.Info(ctx, &pluginv1.InfoRequest{})
				}
				if err != nil && !strings.Contains(err.Error(), "skipped") {
					failed[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func descriptors(pid int) (int, error) {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return len(entries), err
}

func resident(pid int) (int, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm is %q", raw)
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize(), err
}
