package http

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// busyUntil is a collector that responds with 503 until it is ready, and counts requests.
type busyUntil struct {
	then  time.Time
	asked int
}

func (b *busyUntil) RoundTrip(req *http.Request) (*http.Response, error) {
	b.asked++
	status := http.StatusServiceUnavailable
	if !time.Now().Before(b.then) {
		status = http.StatusNoContent
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

func TestABusyCollectorIsRetriedAtLeastEveryThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, collector := New(), &busyUntil{then: time.Now().Add(10 * time.Minute)}
		if err := s.Configure(t.Context(), plugins.Config{JSON: []byte(`{"url": "http://collector"}`)}); err != nil {
			t.Fatal(err)
		}
		s.client.Transport = collector
		if err := s.Write(t.Context(), "one", []audit.Record{{Sequence: 1, Action: "a"}}); err != nil {
			t.Error(err)
		}
		if late := time.Since(collector.then); late > 3*time.Second || collector.asked < 200 || collector.asked > 1000 {
			t.Errorf("the collector received %d requests, the last one %v after it was ready", collector.asked, late)
		}
	})
}

// answersThenNone is a collector that responds with each status in turn, and then not at all.
type answersThenNone []int

func (a *answersThenNone) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(*a) == 0 {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	status := (*a)[0]
	*a = (*a)[1:]
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

// The caller knows its own deadline, so the error names the collector's last response instead.
func TestAtTheDeadlineTheErrorNamesTheCollectorsLastResponse(t *testing.T) {
	for want, answers := range map[string]answersThenNone{
		"the collector returned Service Unavailable; the deadline has passed": {500, 502, 503},
		`Post "http://collector": context deadline exceeded`:                  nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New()
			if err := s.Configure(t.Context(), plugins.Config{JSON: []byte(`{"url": "http://collector", "timeout": "1m"}`)}); err != nil {
				t.Fatal(err)
			}
			s.client.Transport = &answers
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := s.Write(ctx, "one", []audit.Record{{Sequence: 1, Action: "a"}})
			if !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestRecordsAcceptedAtTheDeadlineAreAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, collector := New(), &busyUntil{then: time.Now().Add(time.Second)}
		if err := s.Configure(t.Context(), plugins.Config{JSON: []byte(`{"url": "http://collector"}`)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.client.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := collector.RoundTrip(req)
			if resp.StatusCode == http.StatusNoContent {
				cancel()
			}
			return resp, err
		})
		if err := s.Write(ctx, "one", []audit.Record{{Sequence: 1, Action: "a"}}); err != nil || s.lastOf("one") != 1 {
			t.Errorf("the last sequence is %d, want 1: %v", s.lastOf("one"), err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
