package link

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxWatched bounds the resources of one bundle whose updates are wanted.
const maxWatched = 1000

// ErrTooManySubscriptions means that updates of too many resources are wanted.
var ErrTooManySubscriptions = errors.New("updates of too many resources of this app are wanted")

// unwatchPatience is how long a bundle may take to finish what it has sent.
const unwatchPatience = 500 * time.Millisecond

// watched is what a bundle of StatelessVersion is to tell of: there, one request that is answered at
// its end only (subscriptions/listen) names all of it. When that changes another one takes its
// place, but not before the bundle has ended the first: bundles exist that keep one list for both.
type watched struct {
	mu   sync.Mutex
	uris map[string]struct{}
	wake chan struct{} // holds one; signalled when uris changed
}

// Subscribe asks the bundle to tell OnNotification when the resource is updated
// (notifications/resources/updated).
func (l *Link) Subscribe(ctx context.Context, uri string) error {
	if !l.info.Stateless {
		return l.subscribe(ctx, "resources/subscribe", uri)
	}
	return l.watched.change(func(uris map[string]struct{}) error {
		if len(uris) >= maxWatched {
			return ErrTooManySubscriptions
		}
		uris[uri] = struct{}{}
		return nil
	})
}

// Unsubscribe is the opposite of Subscribe.
func (l *Link) Unsubscribe(ctx context.Context, uri string) error {
	if !l.info.Stateless {
		return l.subscribe(ctx, "resources/unsubscribe", uri)
	}
	return l.watched.change(func(uris map[string]struct{}) error {
		delete(uris, uri)
		return nil
	})
}

func (l *Link) subscribe(ctx context.Context, method, uri string) error {
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	_, err = l.Call(ctx, Request{Method: method, Params: params})
	return err
}

func (w *watched) change(change func(uris map[string]struct{}) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := change(w.uris); err != nil {
		return err
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// watch keeps the bundle telling what it is to tell of, until the link is done.
func (l *Link) watch() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 200*time.Millisecond, 30*time.Second
	for l.life.Err() == nil {
		began := time.Now()
		wanted, some := l.wanted()
		again := false
		if some {
			again = l.tellOf(wanted)
		} else {
			select {
			case <-l.watched.wake:
				continue
			case <-l.life.Done():
			}
		}
		if again {
			continue
		}
		if time.Since(began) > healthyStream {
			pause.Reset()
		}
		select { // the bundle ended it, or refused: that is tried again, ever more seldom
		case <-l.life.Done():
		case <-l.watched.wake:
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// wanted is the params of a request for all that the bundle is to tell of.
func (l *Link) wanted() (params json.RawMessage, some bool) {
	wanted := map[string]any{}
	if l.o.OnListChanged != nil {
		for capability, notification := range map[string]string{"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"} {
			if l.announces(capability) {
				wanted[notification] = true
			}
		}
	}
	l.watched.mu.Lock()
	if len(l.watched.uris) > 0 {
		wanted["resourceSubscriptions"] = slices.Sorted(maps.Keys(l.watched.uris))
	}
	l.watched.mu.Unlock()
	params, err := json.Marshal(map[string]any{"notifications": wanted})
	return params, err == nil && len(wanted) > 0
}

func (l *Link) announces(capability string) bool {
	var said struct {
		ListChanged bool `json:"listChanged"`
	}
	return json.Unmarshal(l.info.offers[capability], &said) == nil && said.ListChanged
}

// tellOf has one subscriptions/listen in flight until it ends or something else is wanted; again
// tells that.
func (l *Link) tellOf(wanted json.RawMessage) (again bool) {
	ctx, cancel := context.WithCancel(l.life)
	defer cancel()
	id := make(chan int64, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := l.Call(ctx, Request{Method: "subscriptions/listen", Params: wanted, begun: func(n int64) { id <- n }})
		if err != nil && ctx.Err() == nil {
			l.log.Debug("the app does not tell of changes", "app", l.o.Name, "error", scrub(err))
		}
	}()
	select {
	case <-done:
		return false
	case <-l.watched.wake:
	}
	select {
	case n := <-id:
		l.out.cancelled(ctx, n, "something else is wanted")
	case <-done:
	}
	late := time.NewTimer(unwatchPatience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		cancel()
		<-done
	}
	return true
}
