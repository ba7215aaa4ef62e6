package link

import (
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// requestLimit stops the reader while the SDK has maxRequests requests of the app to answer: the SDK's
// own queue has no limit.
type requestLimit struct {
	pending  *atomic.Int64
	answered chan struct{} // holds one; signalled at each answer
}

func newRequestLimit() requestLimit {
	return requestLimit{pending: new(atomic.Int64), answered: make(chan struct{}, 1)}
}

// acquire waits until msg, if it is a request, may be given to the SDK.
func (r requestLimit) acquire(msg jsonrpc.Message, done <-chan struct{}) {
	if request, ok := msg.(*jsonrpc.Request); !ok || !request.IsCall() {
		return
	}
	for r.pending.Add(1) > maxRequests {
		r.pending.Add(-1)
		select {
		case <-r.answered:
		case <-done:
			return
		}
	}
}

// release frees a place if msg is a response.
func (r requestLimit) release(msg jsonrpc.Message) {
	if _, ok := msg.(*jsonrpc.Response); !ok {
		return
	}
	r.pending.Add(-1)
	select {
	case r.answered <- struct{}{}:
	default:
	}
}
