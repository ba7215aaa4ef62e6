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

// pace is how long a provider of models waits between two pieces of its answer: that of a fast one.
const pace = 5 * time.Millisecond

// chat measures what the service adds to each piece of a model's answer on its way to a person. The
// pieces say when they were written; they are read from the provider itself and through the service,
// in turn.
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
	through := listener{ours.name, strings.TrimSuffix(ours.url, "/mcp") + "/v1/chat/stream", `{"message":"Say what time it is, again and again."}`}
	for _, c := range []int{1, 16} {
		if err := b.overhear(ctx, c, deltas, through, direct); err != nil {
			return err
		}
	}
	return nil
}

// overhear adds the row for so many answers at a time.
func (b *bench) overhear(ctx context.Context, concurrency, deltas int, through, direct listener) error {
	var beyond, ours, theirs, tail []float64
	for round := range b.rounds + 1 { // the first one warms both up
		t, err1 := through.listen(ctx, concurrency, deltas)
		d, err2 := direct.listen(ctx, concurrency, deltas)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if round > 0 {
			beyond = append(beyond, t.p50-d.p50)
			ours, theirs, tail = append(ours, t.p50), append(theirs, d.p50), append(tail, t.p99)
		}
	}
	what := fmt.Sprintf("chat: a delta beyond the provider's own, p50, %d at a time", concurrency)
	_, _ = fmt.Fprintf(b.o.Log, "%-61s %9.0f us  p99 %6.0f us\n", what, median(beyond), median(tail))
	b.limit(what, 200, "us", median(beyond),
		fmt.Sprintf("%.0f us, p99 %.0f us", median(ours), median(tail)), fmt.Sprintf("%.0f us (provider)", median(theirs)))
	return ctx.Err()
}

// listener reads answers of one endpoint piece by piece.
type listener struct{ name, url, body string }

// delays is how long pieces took from the provider's hand to ours, microseconds.
type delays struct{ p50, p99 float64 }

// listen reads so many answers at the same time, each to its end.
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

// answer reads one answer.
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
		said, err := written(data)
		if err != nil {
			return nil, err
		}
		if said != 0 {
			took = append(took, float64(now.UnixNano()-said)/1000)
		}
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer's status is %s", resp.Status)
	}
	return took, errors.Join(err, lines.Err())
}

// written reads when a piece was written out of an event, the provider's or the service's; 0 when it
// is another event.
func written(data []byte) (int64, error) {
	var event struct {
		RunID string `json:"runId"`
		Text  string `json:"text"` // the service's
		Delta struct {
			Text string `json:"text"` // the provider's
		} `json:"delta"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Error != nil {
		return 0, errors.Join(err, fmt.Errorf("the answer broke: %.300s", data))
	}
	text := strings.TrimSpace(event.Text + event.Delta.Text)
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
