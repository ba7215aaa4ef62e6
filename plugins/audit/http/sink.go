package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// Sink is an audit.Sink that posts records to a collector.
type Sink struct {
	settings Settings
	client   *http.Client

	mu   sync.Mutex
	last map[string]uint64 // the last sequence of each stream that the collector accepted from this process
}

// New returns a sink that must be configured before use.
func New() *Sink { return &Sink{last: map[string]uint64{}} }

// Name implements plugins.Named.
func (*Sink) Name() string { return "http" }

// NewSettings implements plugins.SettingsHolder.
func (*Sink) NewSettings() any {
	s := defaults()
	return &s
}

// Configure implements plugins.Configurer. The collector need not be reachable yet.
func (s *Sink) Configure(_ context.Context, c plugins.Config) error {
	settings := defaults()
	if err := c.Decode(&settings); err != nil {
		return err
	}
	secure, err := settings.TLS.config()
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = secure
	s.settings, s.client = settings, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a POST would become a GET
	}
	return nil
}

// Close implements io.Closer.
func (s *Sink) Close() error {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

// Write implements audit.Sink.
func (s *Sink) Write(ctx context.Context, stream string, records []audit.Record) error {
	if err := audit.CheckWrite(stream, records); err != nil {
		return err
	}
	last := s.lastOf(stream)
	for len(records) > 0 && records[0].Sequence <= last {
		records = records[1:]
	}
	if len(records) == 0 {
		return ctx.Err()
	}
	err := s.send(ctx, stream, records)
	if errors.Is(err, errTooLarge) && len(records) > 1 {
		if err := s.Write(ctx, stream, records[:len(records)/2]); err != nil {
			return err
		}
		return s.Write(ctx, stream, records[len(records)/2:])
	}
	if err != nil {
		return plugins.Unavailable(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[stream] = records[len(records)-1].Sequence
	return nil
}

func (s *Sink) lastOf(stream string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[stream]
}

// send posts a batch until the collector accepts it or ctx ends. It retries after network errors, 429 and 5xx.
func (s *Sink) send(ctx context.Context, stream string, records []audit.Record) error {
	batch := make([]audit.Entry, len(records))
	for i, r := range records {
		batch[i] = audit.Entry{Stream: stream, Record: r}
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 2*time.Second
	var last error
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := s.post(ctx, body)
		if last == nil || ctx.Err() == nil { // the error of an attempt that the deadline cut short does not show what is wrong
			last = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
	if err != nil && ctx.Err() != nil && last != nil {
		return fmt.Errorf("%w; the deadline has passed", last)
	}
	return err
}

// errTooLarge is returned for a batch that must be split.
var errTooLarge = errors.New("the collector returned 413 Request Entity Too Large")

func (s *Sink) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.settings.Timeout))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.settings.URL, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	for name, value := range s.settings.Headers {
		r.Header.Set(name, value.Reveal())
	}
	r.Header.Set("Content-Type", "application/json")
	if s.settings.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.settings.Token.Reveal())
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return nil
	case answer.StatusCode == http.StatusRequestEntityTooLarge:
		return backoff.Permanent(errTooLarge)
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500:
		return fmt.Errorf("the collector returned %s", answer.Status)
	}
	return backoff.Permanent(fmt.Errorf("the collector returned %s", answer.Status))
}
