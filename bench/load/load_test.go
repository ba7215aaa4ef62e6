package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server is a small MCP server over HTTP that counts requests. respond writes the response.
type server struct {
	*httptest.Server
	opened, closed, called, listed atomic.Int64
}

func serve(t *testing.T, respond func(w http.ResponseWriter, body string)) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body := string(raw)
		inSession := r.Header.Get("Mcp-Session-Id") == "s1" && r.Header.Get("X-Extra") == "yes"
		switch {
		case r.Method == http.MethodDelete && inSession:
			s.closed.Add(1)
		case strings.Contains(body, `"initialize"`):
			s.opened.Add(1)
			w.Header().Set("Mcp-Session-Id", "s1")
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		case !inSession:
			w.WriteHeader(http.StatusBadRequest)
		case strings.Contains(body, `"notifications/initialized"`):
			w.WriteHeader(http.StatusAccepted)
		default:
			if strings.Contains(body, `"tools/list"`) {
				s.listed.Add(1)
			} else if strings.Contains(body, `"name":"echo","arguments":{"text":"`) {
				s.called.Add(1)
			}
			respond(w, body)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) target() Target {
	return Target{URL: s.URL + "/mcp", Tool: "echo", Header: map[string]string{"X-Extra": "yes"}}.Padded(200)
}

const validResult = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`

func TestEveryKindOfLoadSendsItsRequests(t *testing.T) {
	for kind, want := range map[Kind][4]int64{Calls: {3, 30, 0, 3}, Lists: {3, 0, 30, 3}, Cycles: {30, 30, 0, 30}} {
		s := serve(t, func(w http.ResponseWriter, _ string) { _, _ = fmt.Fprint(w, validResult) })
		r, err := Run(t.Context(), s.target(), Plan{Kind: kind, Concurrency: 3, Total: 30})
		if err != nil || r.Requests != 30 || r.Failed != 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 {
			t.Errorf("%s: %+v %v", kind, r, err)
		}
		if got := [4]int64{s.opened.Load(), s.called.Load(), s.listed.Load(), s.closed.Load()}; got != want {
			t.Errorf("%s: opened, called, listed, closed %v, want %v", kind, got, want)
		}
	}
}

func TestResponsesWithAnyFramingAreReadCompletely(t *testing.T) {
	for name, respond := range map[string]func(w http.ResponseWriter, body string){
		"with a length": func(w http.ResponseWriter, _ string) { _, _ = fmt.Fprint(w, validResult) },
		"in chunks": func(w http.ResponseWriter, _ string) {
			for _, part := range []string{validResult[:10], validResult[10:]} {
				_, _ = fmt.Fprint(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		},
		"as an event stream": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "event: message\ndata: {\"method\":\"notifications/progress\"}\n\nevent: message\ndata: "+validResult+"\n\n")
			_ = http.NewResponseController(w).Flush()
		},
		"with 100 KB": func(w http.ResponseWriter, _ string) {
			_, _ = fmt.Fprint(w, strings.Replace(validResult, "[]", `["`+strings.Repeat("x", 100_000)+`"]`, 1))
		},
	} {
		s := serve(t, respond)
		r, err := Run(t.Context(), s.target(), Plan{Kind: Calls, Concurrency: 2, Total: 20})
		if err != nil || r.Requests != 20 || r.Failed != 0 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func TestAnErrorIsCountedAsAFailure(t *testing.T) {
	for name, respond := range map[string]func(w http.ResponseWriter, body string){
		"a JSON-RPC error": func(w http.ResponseWriter, _ string) {
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`)
		},
		"a tool that fails": func(w http.ResponseWriter, _ string) {
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"isError":true}}`)
		},
		"an error status": func(w http.ResponseWriter, _ string) { http.Error(w, validResult, http.StatusTooManyRequests) },
	} {
		s := serve(t, respond)
		r, err := Run(t.Context(), s.target(), Plan{Kind: Calls, Concurrency: 1, Total: 5})
		if err != nil || r.Requests != 0 || r.Failed != 1 || r.Error == "" {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func TestARunEndsAtItsTimeLimitAndWithItsContext(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ string) { _, _ = fmt.Fprint(w, validResult) })
	if r, err := Run(t.Context(), s.target(), Plan{Kind: Calls, Concurrency: 2, Duration: 50 * time.Millisecond}); err != nil || r.Requests == 0 || r.Elapsed < 50*time.Millisecond {
		t.Errorf("%+v %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, s.target(), Plan{Kind: Calls, Concurrency: 2, Duration: time.Hour}); err != nil || r.Requests != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestATargetOrPlanThatCannotWorkIsRefused(t *testing.T) {
	validPlan := Plan{Kind: Calls, Concurrency: 1, Total: 1}
	for name, c := range map[string]struct {
		target Target
		plan   Plan
	}{
		"no URL":                     {Target{}, validPlan},
		"another scheme":             {Target{URL: "ftp://127.0.0.1/mcp"}, validPlan},
		"a header with a line break": {Target{URL: "http://127.0.0.1:1/mcp", Header: map[string]string{"A": "b\r\nC: d"}}, validPlan},
		"no listener":                {Target{URL: "http://127.0.0.1:1/mcp"}, validPlan},
		"a plan without an end":      {Target{URL: "http://127.0.0.1:1/mcp"}, Plan{Concurrency: 1}},
		"a plan without clients":     {Target{URL: "http://127.0.0.1:1/mcp"}, Plan{Total: 1}},
	} {
		if _, err := Run(t.Context(), c.target, c.plan); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
