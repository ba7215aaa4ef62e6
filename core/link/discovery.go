package link

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/link/remote"
)

// discoverWait is how long an app may take to answer server/discover before it gets initialize instead. A server of an
// older revision answers with an error, as JSON-RPC demands, but some ignore what they do not know.
const discoverWait = 5 * time.Second

// errNoDiscovery stands for the answer to server/discover that did not come in time.
var errNoDiscovery = &jsonrpc.Error{Code: -32601, Message: "server/discover was not answered in time"}

// discovery watches the handshake of an app that may be stateless. Anything but a clear success of server/discover
// leads to initialize.
type discovery struct {
	mu          sync.Mutex
	late        *time.Timer
	over        bool // server/discover was not answered in time
	initialized bool // initialize was sent in time
}

// discovers notes a message of the SDK's handshake. late is called when server/discover is not answered in time.
func (l *Link) discovers(msg jsonrpc.Message, late func(id jsonrpc.ID)) {
	request, ok := msg.(*jsonrpc.Request)
	if !ok || l.open.Load() {
		return
	}
	d := &l.discovery
	d.mu.Lock()
	defer d.mu.Unlock()
	switch request.Method {
	case "server/discover":
		d.late = time.AfterFunc(discoverWait, func() {
			d.mu.Lock()
			d.over = true
			d.mu.Unlock()
			late(request.ID)
		})
	case "initialize":
		d.initialized = !d.over
	}
}

// end stops the clock: server/discover was answered, or the handshake is over.
func (d *discovery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late != nil {
		d.late.Stop()
	}
}

// undiscovered reports whether the handshake with a remote server failed at server/discover, so that another connection
// may do better with initialize. A server that is down, or that refuses the credentials, refuses initialize too.
func (l *Link) undiscovered(ctx context.Context, err error) bool {
	if _, again := l.conn.(*remote.Conn); !again || ctx.Err() != nil {
		return false
	}
	failed, ok := errors.AsType[*remote.Error](err)
	if ok && (failed.Down || failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden) {
		return false
	}
	l.discovery.mu.Lock()
	defer l.discovery.mu.Unlock()
	return !l.discovery.initialized
}
