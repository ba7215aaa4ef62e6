package table

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// starts measures the time from exec to the first tools/list that contains the app's tool, minus the time that
// the bundle alone needs. The app is already installed: this is not a first start.
func (b *bench) starts(ctx context.Context) error {
	if _, err := b.service(ctx, service{name: "start", bundle: sdkBundle}, ""); err != nil {
		return err
	}
	b.stopAll()
	var whole, own, other []float64
	for range max(3, b.rounds/2) {
		w, err := b.serviceStart(ctx, b.o.Service, "start")
		if err != nil {
			return err
		}
		o, err := b.bundleStart(ctx)
		if err != nil {
			return err
		}
		whole, own = append(whole, milliseconds(w)), append(own, milliseconds(o))
		if b.o.Against == "" {
			continue
		}
		w, err = b.serviceStart(ctx, b.o.Against, "start"+otherBuild)
		if err != nil {
			return err
		}
		other = append(other, milliseconds(w))
	}
	beyond, what := median(whole)-median(own), "start to the first list"
	b.limit(what+", beyond the bundle's own start", 150, "ms", beyond,
		fmt.Sprintf("%.0f ms", median(whole)), fmt.Sprintf("%.0f ms (bundle alone)", median(own)))
	b.compareFigures(what, "ms", whole, other)
	return nil
}

// serviceStart returns how long an executable of the service takes to start with a home.
func (b *bench) serviceStart(ctx context.Context, executable, home string) (time.Duration, error) {
	begin := time.Now()
	p, err := b.startService(ctx, executable, service{name: home, bundle: sdkBundle})
	if err != nil {
		return 0, err
	}
	defer func() { p.stop(); b.started = nil }()
	c, err := load.Dial(serviceTarget(p.url, ""))
	if err != nil {
		return 0, err
	}
	defer c.Hangup()
	if err := c.Open(); err != nil {
		return 0, err
	}
	for time.Since(begin) < 20*time.Second && ctx.Err() == nil {
		if err := c.List(); err != nil {
			return 0, err
		}
		if bytes.Contains(c.Answer(), []byte(`"bench__echo"`)) {
			return time.Since(begin), nil
		}
		time.Sleep(time.Millisecond)
	}
	return 0, errors.Join(errors.New("the app's tool was not listed within 20 s"), ctx.Err())
}

// bundleStart returns how long the bundle alone takes from exec to its first list.
func (b *bench) bundleStart(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	cmd := exec.CommandContext(ctx, b.o.Self, sdkBundle...) //nolint:gosec // this executable
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for _, turn := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"ropewalk-bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
	} {
		if _, err := in.Write([]byte(turn + "\n")); err != nil {
			return 0, err
		}
		if !lines.Scan() {
			return 0, errors.Join(errors.New("the bundle printed nothing"), lines.Err())
		}
	}
	return time.Since(begin), nil
}
