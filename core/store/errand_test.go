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
)

// serves has a server answer until the test ends or stop is called.
func serves(t *testing.T, s *Store, answer Answerer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve(ctx, answer)
	}()
	for ready := false; !ready; {
		s.line.errands.mu.Lock()
		ready = s.line.errands.serve != nil
		s.line.errands.mu.Unlock()
	}
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func TestAServerAsksAnotherOneOfItsDeployment(t *testing.T) {
	url := database(t)
	a, b, c := openURL(t, url), openURL(t, url), openURL(t, url)
	serves(t, b, func(_ context.Context, q json.RawMessage) json.RawMessage {
		return json.RawMessage(`["b",` + string(q) + `]`)
	})
	serves(t, c, func(context.Context, json.RawMessage) json.RawMessage { t.Error("another one was asked"); return nil })
	told := a.Changes(t.Context())
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			got, err := a.Ask(t.Context(), b.Server(), json.RawMessage(fmt.Sprint(i)))
			if want := fmt.Sprintf(`["b",%d]`, i); err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
	asking.Wait()
	if err := b.PutSetting(t.Context(), "last", "x"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, told); got.Name != "last" {
		t.Errorf("errands are told as changes: %+v", got)
	}
	_, err := a.Ask(t.Context(), "NOSUCHSERVER", json.RawMessage(`1`))
	wantCodes(t, core.CodeNotFound, map[string]error{"a server that is gone": err})
	large := json.RawMessage(`"` + strings.Repeat("x", maxErrand) + `"`)
	_, err = a.Ask(t.Context(), b.Server(), large)
	_, back := a.Ask(t.Context(), b.Server(), large[:maxErrand-2])
	wantCodes(t, core.CodeUnavailable, map[string]error{"too large a question": err, "too large an answer": back})
}

func TestACallerThatLeavesEndsTheOthersWork(t *testing.T) {
	url := database(t)
	a, b := openURL(t, url), openURL(t, url)
	begun, ended := make(chan struct{}), make(chan struct{})
	serves(t, b, func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := a.Ask(ctx, b.Server(), json.RawMessage(`1`))
		left <- err
	}()
	next(t, begun)
	leave()
	if err := next(t, left); !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
	next(t, ended)
}

func TestAServerThatEndsAnswersWhatItWorkedOn(t *testing.T) {
	url := database(t)
	a, b := openURL(t, url), openURL(t, url)
	begun := make(chan struct{})
	stop := serves(t, b, func(ctx context.Context, _ json.RawMessage) json.RawMessage {
		close(begun)
		<-ctx.Done()
		return json.RawMessage(`"cut short"`)
	})
	answered := make(chan string, 1)
	go func() {
		got, err := a.Ask(t.Context(), b.Server(), json.RawMessage(`1`))
		answered <- fmt.Sprint(string(got), err)
	}()
	next(t, begun)
	stop()
	if got := next(t, answered); got != `"cut short"<nil>` {
		t.Errorf("got %s", got)
	}
	began := time.Now()
	if _, err := a.Ask(t.Context(), b.Server(), json.RawMessage(`1`)); core.CodeOf(err) != core.CodeNotFound || time.Since(began) > 2*hearWithin {
		t.Errorf("one that does not serve: %v after %v", err, time.Since(began))
	}
}

func TestAFileHasNoOtherServers(t *testing.T) {
	s := open(t)
	if s.Server() != "" {
		t.Errorf("it is called %q", s.Server())
	}
	_, err := s.Ask(t.Context(), "x", nil)
	wantCodes(t, core.CodeUnavailable, map[string]error{"a question": err})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Serve(ctx, nil)
}
