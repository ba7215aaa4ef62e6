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

	"github.com/ropewalk/ropewalk/core/link/remote"
)

// maxSubscriptions is how many of an app's resources may be subscribed to.
const maxSubscriptions = 2000

// ErrTooManySubscriptions means that too many of the app's resources are subscribed to.
var ErrTooManySubscriptions = errors.New("too many resources of this app are subscribed to")

// endTimeout is how long an app may take to finish a cancelled subscriptions/listen request.
const endTimeout = 500 * time.Millisecond

// subscriptions tracks the subscribed resources of an app that uses StatelessVersion. One long-lived request
// (subscriptions/listen) lists all of them, and the lists whose changes the app should report. When the set changes, a
// new request replaces the old one, but only after the app has ended the old one, because some apps share one set of
// subscriptions between both.
type subscriptions struct {
	mu   sync.Mutex
	uris map[string]struct{}
	wake chan struct{} // capacity 1; signaled when uris changed

	settled chan struct{} // closed when the app has acknowledged or ended the first request; nil before the first
}

// settle records that the wait for the first request is over, so the app's lists may be read from now on. It reports
// whether the wait was already over.
func (s *subscriptions) settle() (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.settled:
		return true
	default:
	}
	if s.settled != nil {
		close(s.settled)
	}
	return false
}

// acknowledged records that the app reports changes from now on. Earlier changes were not reported, so lists
// that may have been read already are read again.
func (l *Link) acknowledged() {
	if !l.subscriptions.settle() || l.o.OnListChanged == nil {
		return
	}
	for _, kind := range listKinds() {
		if l.announces(kind) {
			l.listChanges.add(kind)
		}
	}
}

// listKinds returns the capabilities whose lists may change.
func listKinds() []string { return []string{"tools", "prompts", "resources"} }

// openSubscriptions starts keepSubscribed, and waits up to streamWait for the app to confirm that it reports changes.
func (l *Link) openSubscriptions(ctx context.Context) {
	_, some := l.listenParams()
	settled := make(chan struct{})
	l.subscriptions.mu.Lock()
	l.subscriptions.settled = settled
	l.subscriptions.mu.Unlock()
	go l.keepSubscribed() //nolint:contextcheck // it lives as long as the link
	if some {
		select {
		case <-settled:
		case <-ctx.Done():
		case <-time.After(streamWait):
		}
	}
	l.subscriptions.settle()
}

// Subscribe subscribes to a resource: OnNotification receives notifications/resources/updated when it changes.
func (l *Link) Subscribe(ctx context.Context, uri string) error {
	if !l.info.Stateless {
		return l.subscribe(ctx, "resources/subscribe", uri)
	}
	return l.subscriptions.change(func(uris map[string]struct{}) error {
		if len(uris) >= maxSubscriptions {
			return ErrTooManySubscriptions
		}
		uris[uri] = struct{}{}
		return nil
	})
}

// Unsubscribe ends a subscription that Subscribe started.
func (l *Link) Unsubscribe(ctx context.Context, uri string) error {
	if !l.info.Stateless {
		return l.subscribe(ctx, "resources/unsubscribe", uri)
	}
	return l.subscriptions.change(func(uris map[string]struct{}) error {
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

func (s *subscriptions) change(change func(uris map[string]struct{}) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := change(s.uris); err != nil {
		return err
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// keepSubscribed keeps a subscriptions/listen request open while anything is subscribed to, until the link is
// closed.
func (l *Link) keepSubscribed() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 200*time.Millisecond, 30*time.Second
	for l.life.Err() == nil {
		began := time.Now()
		params, some := l.listenParams()
		changed := false
		if some {
			changed = l.listen(params)
		} else {
			select {
			case <-l.subscriptions.wake:
				continue
			case <-l.life.Done():
			}
		}
		if changed {
			continue
		}
		if time.Since(began) > remote.HealthyStream {
			pause.Reset()
		}
		select { // the app ended or refused the request: try again after a pause
		case <-l.life.Done():
		case <-l.subscriptions.wake:
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// listenParams returns the params for subscriptions/listen. some is false if there is nothing to subscribe to.
func (l *Link) listenParams() (params json.RawMessage, some bool) {
	wanted := map[string]any{}
	if l.o.OnListChanged != nil {
		for _, kind := range listKinds() {
			if l.announces(kind) {
				wanted[kind+"ListChanged"] = true
			}
		}
	}
	l.subscriptions.mu.Lock()
	if len(l.subscriptions.uris) > 0 {
		wanted["resourceSubscriptions"] = slices.Sorted(maps.Keys(l.subscriptions.uris))
	}
	l.subscriptions.mu.Unlock()
	params, err := json.Marshal(map[string]any{"notifications": wanted})
	return params, err == nil && len(wanted) > 0
}

// announces reports whether the app sends list_changed notifications for a capability.
func (l *Link) announces(capability string) bool {
	var declared struct {
		ListChanged bool `json:"listChanged"`
	}
	return json.Unmarshal(l.info.offers[capability], &declared) == nil && declared.ListChanged
}

// listen keeps one subscriptions/listen request pending. It returns true if the subscriptions have changed, false if
// the app ended the request.
func (l *Link) listen(params json.RawMessage) (changed bool) {
	ctx, cancel := context.WithCancel(l.life)
	defer cancel()
	c, err := l.start(ctx, Request{Method: "subscriptions/listen", Params: params})
	if err != nil {
		l.subscriptions.settle()
		return false
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.await(ctx, c, nil); err != nil && ctx.Err() == nil {
			l.log.Debug("the app does not report changes", "error", remote.SafeError(err))
		}
		l.subscriptions.settle()
	}()
	select {
	case <-done:
		return false
	case <-l.subscriptions.wake:
	}
	l.out.sendCancelled(ctx, "", c.id, "the subscriptions have changed")
	late := time.NewTimer(endTimeout)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		cancel()
		<-done
	}
	return true
}
