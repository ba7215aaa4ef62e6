package event

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// Relay carries events between the servers of one deployment. *store.Store implements it.
type Relay interface {
	// Send passes an event of this server to the others. It must not block.
	Send(e core.Event)
	// Receive calls deliver with each event that another server has sent, until ctx ends. deliver does not
	// block. The event's Data may be JSON, as a json.RawMessage.
	Receive(ctx context.Context, deliver func(e core.Event))
}

// Join connects the bus to the other servers' buses. Call it before Run.
func (b *Bus) Join(r Relay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.relay = r
}

// receive publishes what other servers send until ctx ends. wait returns once it has ended.
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

// receiveEvent publishes another server's event to the readers of this one.
func (b *Bus) receiveEvent(e core.Event) {
	e.Data = typed(e)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.publish(e)
	}
}

// typed converts an event's data to the struct that it had where it was published. The data of an event that
// this version does not know remains JSON.
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
