package link

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
)

// The servers in this file's tests deviate from the protocol.

func TestAResponseWithItsIDAsAStringFailsTheCallImmediately(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	m := p.read()
	p.send(`{"jsonrpc":"2.0","id":"%s","result":{}}`, m.ID)
	if got := wait(t, done); !errors.Is(got.err, ErrMalformed) || !strings.Contains(got.err.Error(), fmt.Sprintf(`its id is the string "%s", but the request's id is the number %s`, m.ID, m.ID)) {
		t.Errorf("got %v", got.err)
	}
}

func TestAHandshakeWithItsIDAsAStringFailsImmediately(t *testing.T) {
	in, out, p := pipes(t)
	go func() {
		m := p.read()
		p.send(`{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}`, m.ID)
	}()
	if _, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{}); err == nil || !strings.Contains(err.Error(), "but the request's id is the number") {
		t.Errorf("got %v", err)
	}
}

func TestAResponseThatMatchesNoRequestIsReportedAndMentionedInTheUnansweredCallsError(t *testing.T) {
	for answer, what := range map[string]string{
		`{"jsonrpc":"2.0","id":99999999,"result":{}}`:                                    "a response with the id 99999999",
		`{"jsonrpc":"2.0","id":"req-7","result":{}}`:                                     `a response with the id "req-7"`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read it"}}`: `a response with the id null and the error "cannot read it"`,
	} {
		reported := make(chan string, 1)
		l, p := dial(t, stdio.Options{}, Options{Report: func(sentence string) { reported <- sentence }})
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := l.Call(ctx, Request{Method: "tools/call"})
			done <- err
		}()
		p.read()
		p.send("%s", answer)
		if got := wait(t, reported); got != "the app sent "+what+", which matches no request" {
			t.Errorf("reported %q", got)
		}
		late := errors.New("took too long")
		cancel(late)
		if err := wait(t, done); !errors.Is(err, late) || !strings.Contains(err.Error(), strings.Split(what, " and the error")[0]) || strings.Contains(err.Error(), "cannot read it") {
			t.Errorf("the call ended with %v", err)
		}
		_ = l.Close()
	}
}

func TestAListThatFailsAfterItsFirstPageKeepsTheEarlierItems(t *testing.T) {
	for name, fault := range map[string]string{
		"an error":                  `"error":{"code":-32603,"message":"the database is locked"}`,
		"the same cursor":           `"result":{"tools":[],"nextCursor":"2"}`,
		"a page without a list":     `"result":{}`,
		"a list that is an object":  `"result":{"tools":{}}`,
		"a cursor that is a number": `"result":{"tools":[],"nextCursor":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			reported := make(chan string, 1)
			l, p := dial(t, stdio.Options{}, Options{Report: func(sentence string) { reported <- sentence }})
			go func() {
				p.answer(p.read(), `{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}`)
				p.send(`{"jsonrpc":"2.0","id":%s,%s}`, p.read().ID, fault)
			}()
			items, err := l.List(t.Context(), core.KindTools)
			if err != nil || len(items) != 2 {
				t.Errorf("got %d items, %v", len(items), err)
			}
			if got := wait(t, reported); !strings.HasPrefix(got, "the list of tools is cut off after 2 entries: ") {
				t.Errorf("reported %q", got)
			}
		})
	}
}

func TestAnAppThatDeclaresNothingIsAskedForItsToolsOnce(t *testing.T) {
	for answer, want := range map[string]int{`"result":{"tools":[{"name":"a"}]}`: 1, `"error":{"code":-32601,"message":"unknown method"}`: 0} {
		reported := make(chan string, 1)
		in, out, p := pipes(t)
		go func() {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}`, p.read().ID)
			p.read()
			m := p.read()
			p.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
		}()
		l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{Report: func(sentence string) { reported <- sentence }})
		if err != nil {
			t.Fatal(err)
		}
		if items, err := l.List(t.Context(), core.KindTools); err != nil || len(items) != want {
			t.Errorf("%s: %d tools, %v", answer, len(items), err)
		}
		if want == 0 {
			if got := wait(t, reported); got != "the app offers nothing, because it declared no tools" {
				t.Errorf("reported %q", got)
			}
		}
		if items, err := l.List(t.Context(), core.KindPrompts); err != nil || len(items) != 0 {
			t.Errorf("prompts: %d, %v", len(items), err)
		}
		_ = l.Close()
	}
}

func TestAnAppThatIgnoresDiscoveryGetsTheHandshakeSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toPeer, in := io.Pipe()
		out, fromPeer := io.Pipe()
		p := &peer{t: t, in: bufio.NewReader(toPeer), out: fromPeer}
		go func() {
			if m := p.read(); m.Method != "server/discover" {
				t.Errorf("the first request is %s", m.Method)
			}
			p.handshake()
		}()
		began := time.Now()
		l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{Stateless: true})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != discoverWait || l.Info().Stateless {
			t.Errorf("the link was open after %v, stateless: %t", took, l.Info().Stateless)
		}
		_ = l.Close()
		_ = fromPeer.Close()
	})
}

func TestEventStreamsMayUseAnyLineEnding(t *testing.T) {
	for name, end := range map[string]string{"LF": "\n", "CR LF": "\r\n", "CR": "\r"} {
		url := serve(t, script(func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range []string{": hello", end, "event: message", end, fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a"}]}}`, m.ID), end, end} {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
		if items, err := l.List(t.Context(), core.KindTools); err != nil || len(items) != 1 {
			t.Errorf("%s: %d tools, %v", name, len(items), err)
		}
	}
}

func TestTheErrorForARedirectToAnotherSchemeNamesBothSchemes(t *testing.T) {
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+r.Host+"/mcp", http.StatusTemporaryRedirect)
	}))
	_, err := openRemote(t, core.Remote{Type: "streamable-http", URL: plain}, remote.Options{}, Options{})
	if err == nil || !strings.Contains(err.Error(), "redirects from http to https://127.0.0.1:") {
		t.Errorf("to https: %v", err)
	}
}

func TestARemoteServerThatFailsAtDiscoveryGetsTheHandshake(t *testing.T) {
	t.Parallel()
	for name, discover := range map[string]http.HandlerFunc{
		"500":           func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", 500) },
		"404 with HTML": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); _, _ = io.WriteString(w, "<html>") },
		"200 with HTML": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
		"200 and no body": func(http.ResponseWriter, *http.Request) {},
		"202":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
		"a truncated body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jso`)
		},
		"an empty stream": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
		"an unrelated result": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`)
		},
		"never": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			honest := handlers(sdkServer())["streamable-http"]
			var mu sync.Mutex
			asked := 0
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m message
				if _ = json.Unmarshal(body, &m); m.Method == "server/discover" {
					mu.Lock()
					asked++
					mu.Unlock()
					discover(w, r)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				honest.ServeHTTP(w, r)
			}))
			l, err := openRemote(t, core.Remote{Type: "streamable-http", URL: url}, remote.Options{AllowPrivate: true}, Options{Stateless: true})
			if err != nil {
				t.Fatal(err)
			}
			if items, err := l.List(t.Context(), core.KindTools); err != nil || len(items) == 0 || l.Info().Stateless {
				t.Errorf("%d tools, %v, stateless: %t", len(items), err, l.Info().Stateless)
			}
			mu.Lock()
			defer mu.Unlock()
			if asked == 0 {
				t.Error("server/discover was not tried")
			}
		})
	}
}
