package table

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pace is the time between two pieces of the model provider's response. It is as short as a fast provider's.
const pace = 5 * time.Millisecond

// chat measures how much the service delays each piece of a model's response on its way to a person. The pieces
// contain the time at which they were written. They are read alternately from the provider directly and through
// the service.
func (b *bench) chat(ctx context.Context) error {
	deltas := int(b.span / pace)
	provider, err := b.rival(ctx, "provider", "rival", "model", "--deltas", strconv.Itoa(deltas), "--every", pace.String())
	if err != nil {
		return err
	}
	ours, err := b.service(ctx, service{name: "chat", bundle: sdkBundle, models: map[string]any{
		"default": "bench:stream", "fast": "bench:once",
		"providers": map[string]any{"bench": map[string]any{"type": "anthropic", "baseUrl": strings.TrimSuffix(provider.url, "/v1/messages")}},
	}}, "")
	if err != nil {
		return err
	}
	direct := listener{"provider", provider.url, `{"model":"stream","stream":true}`}
	listeners := []listener{direct, throughService(ours)}
	if ours.other != nil {
		listeners = append(listeners, throughService(*ours.other))
	}
	for _, c := range []int{1, 16} {
		if err := b.deltas(ctx, c, deltas, listeners); err != nil {
			return err
		}
	}
	return nil
}

// throughService returns the listener for an instance of the service.
func throughService(c contestant) listener {
	return listener{c.name, strings.TrimSuffix(c.url, "/mcp") + "/v1/chat/stream", `{"message":"Say what time it is, again and again."}`}
}

// deltas adds the rows for a number of simultaneous responses. The listeners are for the provider, the service,
// and the other build of the service if there is one.
func (b *bench) deltas(ctx context.Context, concurrency, deltas int, listeners []listener) error {
	p50, beyond, tail := make([][]float64, len(listeners)), make([][]float64, len(listeners)), make([][]float64, len(listeners))
	for round := range b.rounds + 1 { // the first round warms up the servers
		for i, l := range listeners {
			took, err := l.listen(ctx, concurrency, deltas)
			if err != nil {
				return err
			}
			if round > 0 {
				p50[i], tail[i] = append(p50[i], took.p50), append(tail[i], took.p99)
				beyond[i] = append(beyond[i], took.p50-p50[0][round-1])
			}
		}
	}
	what := fmt.Sprintf("chat: a delta beyond the provider's own, p50, %d at a time", concurrency)
	_, _ = fmt.Fprintf(b.o.Log, "%-61s %9.0f us  p99 %6.0f us\n", what, median(beyond[1]), median(tail[1]))
	b.limit(what, 200, "us", median(beyond[1]),
		fmt.Sprintf("%.0f us, p99 %.0f us", median(p50[1]), median(tail[1])), fmt.Sprintf("%.0f us (provider)", median(p50[0])))
	if len(listeners) > 2 {
		b.compareFigures(fmt.Sprintf("chat: a delta, p50, %d at a time", concurrency), "us", p50[1], p50[2])
	}
	return ctx.Err()
}

// listener reads responses from one endpoint piece by piece.
type listener struct{ name, url, body string }

// delays is how long pieces took from the provider to this process, in microseconds.
type delays struct{ p50, p99 float64 }

// listen reads the given number of responses at the same time, each to its end.
func (l listener) listen(ctx context.Context, concurrency, deltas int) (delays, error) {
	var mu sync.Mutex
	var all []float64
	var failed error
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			took, err := l.answer(ctx)
			if err == nil && len(took) != deltas {
				err = fmt.Errorf("%d pieces of %d arrived", len(took), deltas)
			}
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return delays{}, fmt.Errorf("%s: %w", l.name, failed)
	}
	slices.Sort(all)
	return delays{p50: all[len(all)/2], p99: all[len(all)*99/100]}, nil
}

// answer reads one response.
func (l listener) answer(ctx context.Context) (took []float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(l.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		now := time.Now()
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		output, err := written(data)
		if err != nil {
			return nil, err
		}
		if output != 0 {
			took = append(took, float64(now.UnixNano()-output)/1000)
		}
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the response's status is %s", resp.Status)
	}
	return took, errors.Join(err, lines.Err())
}

// written returns when the piece in an event from the provider or the service was written, or 0 if the event
// contains none.
func written(data []byte) (int64, error) {
	var event struct {
		RunID string `json:"runId"`
		Text  string `json:"text"` // from the service
		Delta struct {
			Text string `json:"text"` // from the provider
		} `json:"delta"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Error != nil {
		return 0, errors.Join(err, fmt.Errorf("the response broke off: %.300s", data))
	}
	text := strings.TrimSpace(event.Text + event.Delta.Text)
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
