package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ropewalk/ropewalk/core"
)

const (
	httpQueue   = 10_000 // records that wait; more are not taken
	httpBatch   = 500
	httpTimeout = 10 * time.Second
	httpRetry   = 15 * time.Minute // how long a batch is repeated
)

// HTTP is a sink that posts records to a collector, as a JSON array.
type HTTP struct {
	url    string
	token  core.Secret
	client *http.Client
	queue  chan core.AuditRecord
	lost   func(records int, err error)
	done   chan struct{}
	life   context.Context //nolint:containedctx // ends when Close gives up
	stop   context.CancelFunc
}

// NewHTTP starts a sink. lost is called for records that the collector did not take.
func NewHTTP(url string, token core.Secret, client *http.Client, lost func(records int, err error)) *HTTP {
	h := &HTTP{url: url, token: token, client: client, lost: lost, queue: make(chan core.AuditRecord, httpQueue), done: make(chan struct{})}
	h.life, h.stop = context.WithCancel(context.Background())
	go h.send()
	return h
}

// Write implements Sink: it queues the record.
func (h *HTTP) Write(_ context.Context, r core.AuditRecord) error {
	select {
	case h.queue <- r:
		return nil
	default:
		return errors.New("audit.url: too many records wait for the collector")
	}
}

// Close implements Sink. No Write may follow.
func (h *HTTP) Close(ctx context.Context) error {
	close(h.queue)
	defer h.stop()
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		h.stop()
		<-h.done
		return ctx.Err()
	}
}

func (h *HTTP) send() {
	defer close(h.done)
	for first := range h.queue {
		batch := []core.AuditRecord{first}
		for len(batch) < httpBatch && len(h.queue) > 0 {
			batch = append(batch, <-h.queue)
		}
		_, err := backoff.Retry(h.life, func() (struct{}, error) { return struct{}{}, h.post(batch) }, backoff.WithMaxElapsedTime(httpRetry))
		if err != nil {
			h.lost(len(batch), err)
		}
	}
}

func (h *HTTP) post(batch []core.AuditRecord) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return backoff.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(h.life, httpTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token.Reveal())
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode < 300:
		return nil
	case answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests:
		return backoff.Permanent(fmt.Errorf("the collector answered %s", answer.Status))
	}
	return fmt.Errorf("the collector answered %s", answer.Status)
}
