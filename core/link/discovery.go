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

// discoverWait is how long an app may take to answer server/discover before initialize is sent instead. JSON-RPC
// requires a server with an older revision to return an error, but some ignore methods that they do not know.
const discoverWait = 5 * time.Second

// errNoDiscovery replaces the response to server/discover if none came in time.
var errNoDiscovery = &jsonrpc.Error{Code: -32601, Message: "server/discover was not answered in time"}

// discovery watches the handshake with an app that may be stateless. Anything but a clear success of
// server/discover leads to initialize.
type discovery struct {
	mu          sync.Mutex
	late        *time.Timer
	over        bool          // server/discover was not answered in time
	initialized bool          // initialize was sent in time
	refusal     *remote.Error // set if server/discover was refused because credentials are missing
}

// watchDiscovery observes a message of the SDK's handshake. late is called if server/discover is not answered in time.
func (l *Link) watchDiscovery(msg jsonrpc.Message, late func(id jsonrpc.ID)) {
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

// noteRefusal records that a server rejected server/discover because credentials are missing. If initialize fails too,
// the missing credentials are the real reason: some servers accept initialize without credentials, but then reject its
// revision.
func (d *discovery) noteRefusal(msg jsonrpc.Message, err error) {
	request, ok := msg.(*jsonrpc.Request)
	if !ok || request.Method != "server/discover" {
		return
	}
	if failed, ok := errors.AsType[*remote.Error](err); ok && failed.Status == http.StatusUnauthorized {
		d.mu.Lock()
		d.refusal = failed
		d.mu.Unlock()
	}
}

func (d *discovery) refused() *remote.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusal
}

// end stops the timer, because server/discover was answered or the handshake has ended.
func (d *discovery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late != nil {
		d.late.Stop()
	}
}

// failedDiscovery reports whether the handshake with a remote server failed at server/discover, so that a second
// connection may succeed with initialize. A server that is down or rejects the credentials would fail
// initialize too.
func (l *Link) failedDiscovery(ctx context.Context, err error) bool {
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
