package interact

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// silentPeer is a server that never responds.
type silentPeer struct{}

func (silentPeer) ServerID() string { return "a" }

func (silentPeer) RequestPeer(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestOneUserCannotTakeAllRequestsToOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil)
		b.o.Peers = silentPeer{}
		d := newDialog(b, "notes")
		ctx, cancel := context.WithCancel(t.Context())
		resume := func(ctx context.Context, user string) error {
			_, err := d.resumeOnPeer(ctx, statePrefix+"b.x", &Call{Request: link.Request{Sender: user}})
			return err
		}
		var waiting sync.WaitGroup
		for range MaxPeerRequests {
			waiting.Go(func() { _ = resume(ctx, "mallory") })
		}
		synctest.Wait()
		if err := resume(ctx, "mallory"); core.CodeOf(err) != core.CodeRateLimited {
			t.Errorf("one too many: %v", err)
		}
		other, stop := context.WithCancel(t.Context())
		stop()
		if err := resume(other, "victim"); core.CodeOf(err) == core.CodeRateLimited {
			t.Errorf("another user: %v", err)
		}
		cancel()
		waiting.Wait()
	})
}
