package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/bench/load"
)

// adapters measures the cost of plugins: an identity provider and Redis, each behind a plugin, compared with
// dev mode and sessions in memory. It also counts the calls to the plugins.
func (b *bench) adapters(ctx context.Context) error {
	redis, err := b.redis(ctx)
	if err != nil {
		return err
	}
	return b.withProvider(ctx, func(auth map[string]any, token string) error {
		with, err1 := b.service(ctx, service{
			name: "oidc and redis", bundle: sdkBundle, auth: auth, sessions: map[string]any{"adapter": "redis", "url": redis},
		}, token)
		without, err2 := b.service(ctx, service{name: "dev and memory", bundle: sdkBundle}, "")
		if err := firstOf(err1, err2); err != nil {
			return err
		}
		before, err := pluginCalls(ctx, with.url, token)
		if err != nil {
			return err
		}
		got, err := b.race(ctx, "call c=16, oidc and redis", load.Plan{Kind: load.Calls, Concurrency: 16}, with, without)
		if err != nil {
			return err
		}
		after, err := pluginCalls(ctx, with.url, token)
		if err != nil {
			return err
		}
		b.compareRates("oidc and redis, against dev mode and memory, c=16", 0.9, got[0], got[1])
		calls := int64(0)
		for _, s := range got[0] {
			calls += s.Requests
		}
		asked := after - before
		b.limit("plugin calls for 1,000 tool calls, oidc and redis", 10, "calls", 1000*asked/float64(max(calls, 1)),
			fmt.Sprintf("%.0f for %d", asked, calls), "")
		return nil
	})
}

// redis starts a Redis server without persistence and returns its URL.
func (b *bench) redis(ctx context.Context) (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errors.New("the plugin rows need redis-server: install the Debian package redis-server")
	}
	var lc net.ListenConfig
	free, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		return "", err
	}
	ready := func(line string) string {
		if strings.Contains(line, "Ready to accept connections") {
			return fmt.Sprintf("redis://127.0.0.1:%d/0", port)
		}
		return ""
	}
	p, err := start(ctx, ready, path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--dir", b.dir)
	if err != nil {
		return "", err
	}
	b.started = append(b.started, p)
	return p.url, nil
}

// pluginCalls returns how many calls the service has made to its plugins so far, according to its own metrics.
func pluginCalls(ctx context.Context, mcp, token string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(mcp, "/mcp")+"/v1/metrics", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, errors.Join(fmt.Errorf("metrics: %s %s", resp.Status, text), err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "ropewalk_plugin_calls_total{") {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("metrics: %q: %w", line, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return 0, errors.New("the metrics do not mention a plugin")
	}
	return sum, nil
}
