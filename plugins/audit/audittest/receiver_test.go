package audittest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	httpsink "github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// relay is the built-in sink for receivers, with a hop on the way that changes what it learns.
type relay struct{ learns func(status int) int }

func relayed(t *testing.T, change func(*relay)) audittest.Subject {
	t.Helper()
	receiver, hop := &audittest.Receiver{}, &relay{func(status int) int { return status }}
	change(hop)
	collector := httptest.NewServer(receiver)
	t.Cleanup(collector.Close)
	backend, err := kit.NewProxy(collector.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableKeepAlives: true}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://"+backend.Address()+r.URL.Path, bytes.NewReader(body))
		answer, err := client.Do(req)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = answer.Body.Close()
		w.WriteHeader(hop.learns(answer.StatusCode))
	}))
	t.Cleanup(server.Close)
	return audittest.Subject{Receiver: receiver, Backend: backend, Open: func(ctx context.Context) (*audittest.Process, error) {
		s := httpsink.New()
		err := s.Configure(ctx, plugins.Config{JSON: json.RawMessage(`{"url": "` + server.URL + `", "timeout": "15s"}`)})
		return &audittest.Process{Sink: s, Kill: func() {}, Close: func() { _ = s.Close() }}, err
	}}
}

func TestSinksThatPassRecordsOnAreJudgedByWhatTheirReceiverSays(t *testing.T) {
	takes := func(statuses func(int) bool) func(*relay) {
		return func(r *relay) {
			r.learns = func(status int) int {
				if statuses(status) {
					return http.StatusOK
				}
				return status
			}
		}
	}
	for lie, change := range map[string]func(*relay){
		"takes every answer for OK": takes(func(int) bool { return true }),
		"drops what its receiver finds wrong": takes(func(status int) bool {
			return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge
		}),
		"takes a redirect for OK":                   takes(func(status int) bool { return status < 400 }),
		"does not wait for a receiver that is busy": takes(func(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }),
		"nothing wrong":                             func(*relay) {},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			for _, p := range audittest.Properties() {
				if p.Name != audittest.Failing {
					continue
				}
				if outcome := p.Judge(t.Context(), plugintest.Trial(kit.Quick), relayed(t, change)); (outcome.Verdict == kit.Fail) != (lie != "nothing wrong") {
					t.Errorf("%s: %v", outcome.Verdict, outcome.Err)
				}
			}
		})
	}
}
