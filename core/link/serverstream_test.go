package link

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

func TestTheServerMessageStreamIsKeptOpen(t *testing.T) {
	var gets atomic.Int64
	answered := make(chan message, 1)
	plain := script(nil)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			if gets.Load() == 2 {
				answered <- message{}
			}
			plain.ServeHTTP(w, r)
			return
		}
		if id := r.Header.Get("Mcp-Session-Id"); id != "the-session" {
			t.Errorf("the stream is requested in session %q", id)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch gets.Add(1) {
		case 1:
			_, _ = fmt.Fprint(w, "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n")
		case 2:
			if id := r.Header.Get("Last-Event-Id"); id != "e1" {
				t.Errorf("the stream is resumed after %q", id)
			}
			_, _ = fmt.Fprint(w, "data: junk\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n")
			_, _ = fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			_ = http.NewResponseController(w).Flush()
			wait(t, answered) // the SDK's answer to the ping
		default:
			http.Error(w, "gone", http.StatusNotFound)
		}
	}))
	changed := make(chan string, 4)
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{OnListChanged: func(kind string) { changed <- kind }})
	if first, second := wait(t, changed), wait(t, changed); first != "prompts" || second != "tools" {
		t.Errorf("the changed lists are %s and %s", first, second)
	}
	wait(t, l.Done())
	if !errors.Is(l.Err(), remote.ErrSessionLost) {
		t.Errorf("the link ended with %v", l.Err())
	}
}

func TestAnAppIsOpenOnceTheServerHasAnsweredTheStreamRequest(t *testing.T) {
	plain, open := script(nil), make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			plain.ServeHTTP(w, r)
			return
		}
		select {
		case <-open:
			t.Error("the app is open before its stream: a question during its first call would be lost")
		case <-time.After(50 * time.Millisecond):
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	close(open)
}

func TestAStreamIsRequestedOnceFromAServerThatOffersNone(t *testing.T) {
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusOK, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			asked := make(chan struct{}, 8)
			plain := script(func(w http.ResponseWriter, _ *http.Request, m message) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":1}`, m.ID)
			})
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					w.WriteHeader(status)
					asked <- struct{}{}
					return
				}
				plain.ServeHTTP(w, r)
			}))
			l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
			wait(t, asked)
			if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); err != nil {
				t.Error(err)
			}
			_ = l.Close()
			if len(asked) > 0 {
				t.Error("the stream was requested again")
			}
		})
	}
}
