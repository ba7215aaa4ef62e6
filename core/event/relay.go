package event

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// Relay carries events between the servers of one deployment. *store.Store is one.
type Relay interface {
	// Send passes an event of this server to the others. It must not wait.
	Send(e core.Event)
	// Receive calls deliver, which does not wait, with each event that another server has sent, until
	// ctx ends. Its Data may be JSON, as a json.RawMessage.
	Receive(ctx context.Context, deliver func(e core.Event))
}

// Join connects the bus to those of the other servers. Call it before Run.
func (b *Bus) Join(r Relay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.relay = r
}

// receive publishes what other servers send until ctx ends; wait returns after that.
func (b *Bus) receive(ctx context.Context) (wait func()) {
	b.mu.Lock()
	relay := b.relay
	b.mu.Unlock()
	ended := make(chan struct{})
	if relay == nil {
		close(ended)
	} else {
		go func() {
			defer close(ended)
			relay.Receive(ctx, b.receiveEvent)
		}()
	}
	return func() { <-ended }
}

// receiveEvent publishes an event of another server to the readers of this one.
func (b *Bus) receiveEvent(e core.Event) {
	e.Data = typed(e)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.publish(e)
	}
}

// typed returns an event's data as the struct that it had where it was published. The data of an event
// that this version does not know stays JSON.
func typed(e core.Event) any {
	raw, ok := e.Data.(json.RawMessage)
	if !ok {
		return e.Data
	}
	switch e.Name {
	case core.EventBundleInstalled:
		return as[core.BundleInstalled](raw)
	case core.EventBundleInstallFailed:
		return as[core.BundleInstallFailed](raw)
	case core.EventBundleUninstalled:
		return as[core.BundleUninstalled](raw)
	case core.EventBundleStarted:
		return as[core.BundleStarted](raw)
	case core.EventBundleStopped:
		return as[core.BundleStopped](raw)
	case core.EventBundleProgress:
		return as[core.BundleProgress](raw)
	case core.EventBundleCrashed:
		return as[core.BundleCrashed](raw)
	case core.EventBundleRecovered:
		return as[core.BundleRecovered](raw)
	case core.EventBundleDead:
		return as[core.BundleDead](raw)
	case core.EventDataChanged:
		return as[core.DataChanged](raw)
	case core.EventConversationUpdated:
		return as[core.ConversationUpdated](raw)
	case core.EventConversationDeleted:
		return as[core.ConversationDeleted](raw)
	}
	return raw
}

func as[T any](raw json.RawMessage) any {
	var data T
	if json.Unmarshal(raw, &data) != nil {
		return raw
	}
	return data
}
