package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/cluster"
)

// serve makes a server answer peer requests until the test ends or stop is called.
func serve(t *testing.T, s *Store, answer cluster.Handler) (stop func()) {
	t.Helper()
	stop = sync.OnceFunc(s.cluster.Handle("a", 256, answer))
	t.Cleanup(stop)
	return stop
}

func TestAServerSendsARequestToAPeer(t *testing.T) {
	url := newDatabase(t)
	a, b, c := openURL(t, url), openURL(t, url), openURL(t, url)
	serve(t, b, func(_ context.Context, q json.RawMessage) json.RawMessage {
		return json.RawMessage(`["b",` + string(q) + `]`)
	})
	serve(t, c, func(context.Context, json.RawMessage) json.RawMessage {
		t.Error("the request reached a different server")
		return nil
	})
	t.Cleanup(b.cluster.Handle("another topic", 256, func(context.Context, json.RawMessage) json.RawMessage {
		t.Error("the request was about a different topic")
		return nil
	}))
	changes := a.Changes(t.Context())
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			got, err := a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(fmt.Sprint(i)))
			if want := fmt.Sprintf(`["b",%d]`, i); err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
	asking.Wait()
	if err := b.PutSetting(t.Context(), "last", "x"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, changes); got.Name != "last" {
		t.Errorf("peer requests should not be reported as changes: %+v", got)
	}
	_, err := a.RequestPeer(t.Context(), "NOSUCHSERVER", "a", json.RawMessage(`1`))
	wantCodes(t, core.CodeNotFound, map[string]error{"a server that is gone": err})
	large := json.RawMessage(`"` + strings.Repeat("x", cluster.MaxMessage) + `"`)
	_, err = a.RequestPeer(t.Context(), b.ServerID(), "a", large)
	_, back := a.RequestPeer(t.Context(), b.ServerID(), "a", large[:cluster.MaxMessage-2])
	wantCodes(t, core.CodeUnavailable, map[string]error{"too large a question": err, "too large an answer": back})
}

func TestACallerThatLeavesCancelsThePeersWork(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	begun, ended := make(chan struct{}), make(chan struct{})
	serve(t, b, func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := a.RequestPeer(ctx, b.ServerID(), "a", json.RawMessage(`1`))
		left <- err
	}()
	next(t, begun)
	leave()
	if err := next(t, left); !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
	next(t, ended)
}

func TestAServerThatShutsDownAnswersPendingRequests(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	begun := make(chan struct{})
	stop := serve(t, b, func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(begun)
		<-ctx.Done()
		return json.RawMessage(`"cut short"`)
	})
	answered := make(chan string, 1)
	go func() {
		got, err := a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(`1`))
		answered <- fmt.Sprint(string(got), err)
	}()
	next(t, begun)
	stop()
	if got := next(t, answered); got != `"cut short"<nil>` {
		t.Errorf("got %s", got)
	}
	_, err := a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(`1`))
	wantCodes(t, core.CodeUnavailable, map[string]error{"one that does not serve": err})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(`1`))
	wantCodes(t, core.CodeNotFound, map[string]error{"one that has ended": err})
}

// A server that is too busy to accept a request in time is treated as unavailable, not as gone. A client that follows a run
// on that server may try again.
func TestABusyPeerIsNotConsideredGone(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	free := make(chan struct{})
	begun := make(chan struct{})
	t.Cleanup(b.cluster.Handle("a", 1, func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(begun)
		select {
		case <-free:
		case <-ctx.Done():
		}
		return json.RawMessage(`1`)
	}))
	first := make(chan error, 1)
	go func() {
		_, err := a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(`1`))
		first <- err
	}()
	next(t, begun)
	_, full := a.RequestPeer(t.Context(), b.ServerID(), "a", json.RawMessage(`2`))
	wantCodes(t, core.CodeUnavailable, map[string]error{"one that has as many as it takes": full})
	close(free)
	if err := next(t, first); err != nil {
		t.Error(err)
	}

	// The test holds b's only connection, so b reads no notices for longer than AcceptTimeout.
	pool := b.db.ReadPool()
	pool.SetMaxOpenConns(1)
	held, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 1)
	go func() {
		_, err := a.RequestPeer(t.Context(), b.ServerID(), "b", json.RawMessage(`1`))
		late <- err
	}()
	t.Cleanup(b.cluster.Handle("b", 1, func(context.Context, json.RawMessage) json.RawMessage { return json.RawMessage(`1`) }))
	select {
	case err := <-late:
		t.Errorf("the request was abandoned: %v", err)
	case <-time.After(cluster.AcceptTimeout + cluster.AcceptTimeout/2):
	}
	pool.SetMaxOpenConns(0)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := next(t, late); err != nil {
		t.Error(err)
	}
}

func TestADatabaseFileHasNoPeerServers(t *testing.T) {
	s := open(t)
	if s.ServerID() != "" {
		t.Errorf("the server's id is %q", s.ServerID())
	}
	_, err := s.RequestPeer(t.Context(), "x", "a", nil)
	wantCodes(t, core.CodeUnavailable, map[string]error{"a question": err})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.ServePeers(ctx, "a", 1, nil)
}
