package link

import (
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// gate holds the reader back while the SDK has too many requests of the bundle to answer: the
// SDK's own queue knows no bound.
type gate struct {
	asked *atomic.Int64
	turn  chan struct{} // holds one; signalled at each answer
}

func newGate() gate { return gate{asked: new(atomic.Int64), turn: make(chan struct{}, 1)} }

// admit waits for room for msg, if it is a request.
func (g gate) admit(msg jsonrpc.Message, done <-chan struct{}) {
	if r, ok := msg.(*jsonrpc.Request); !ok || !r.IsCall() {
		return
	}
	for g.asked.Add(1) > maxRequests {
		g.asked.Add(-1)
		select {
		case <-g.turn:
		case <-done:
			return
		}
	}
}

// answered makes room if msg is a response.
func (g gate) answered(msg jsonrpc.Message) {
	if _, ok := msg.(*jsonrpc.Response); !ok {
		return
	}
	g.asked.Add(-1)
	select {
	case g.turn <- struct{}{}:
	default:
	}
}
