package link

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// ProtocolVersion is the revision that a link offers. A bundle may answer with an older one.
const ProtocolVersion = "2025-11-25"

// StatelessVersion is the revision without handshake and sessions: what a session would hold
// travels with each request.
const StatelessVersion = "2026-07-28"

// The bounds of one link.
const (
	defaultMaxCalls = 4096 // calls in flight
	maxQueuedNotes  = 1024 // notifications that wait for one call's notify
	maxQueuedBytes  = 8 << 20
	maxRequests     = 64 // requests of the bundle that are being answered
)

// Options are how a link is opened. The zero value is usable.
type Options struct {
	Name     string       // the app's name, for log lines
	Version  string       // the server's own version, as the bundle sees it
	Logger   hclog.Logger // nil logs nothing
	MaxCalls int          // calls in flight at once; 0 is 4096

	// Stateless asks the bundle first whether it speaks StatelessVersion, and falls back to the
	// handshake of the others; Info.Stateless tells which it is. Without it only the handshake is
	// tried.
	Stateless bool

	// OnListChanged is called when the bundle says that its "tools", "prompts" or "resources"
	// changed. Calls come one after the other, on a goroutine of the link; what a bundle says
	// while one runs is put together into one more. It may use the link.
	OnListChanged func(kind string)

	// OnNotification gets every notification that is not known to belong to one call, in wire order.
	// It runs on the link's reader: it must not block and must not use the link.
	OnNotification func(rpc.Notification)

	// Requests answer, by method, what the bundle asks of its client, raw, before the SDK sees it.
	// What is not here is the SDK's: it answers pings and an empty list of roots, and refuses the
	// rest. Each request runs on a goroutine of its own, 64 at most.
	Requests map[string]RequestHandler

	// Capabilities are the client capabilities to advertise, as the JSON of the initialize
	// request. nil advertises none, so that well-behaved bundles ask nothing.
	Capabilities json.RawMessage
}

// RequestHandler answers one request of a bundle. ctx ends when the bundle cancels the request or
// the link closes. An *rpc.Error is returned to the bundle as it is.
type RequestHandler func(ctx context.Context, q Question) (json.RawMessage, error)

// Question is what a bundle asks of its client. Before StatelessVersion it does not say for which
// call it asks: Callers are those for whom calls were in flight when it came.
type Question struct {
	Method  string
	Params  json.RawMessage
	Callers []any // Request.Caller of each, in the order of the calls

	// Notify tells the bundle what its client says about the question before it answers, such as its
	// progress (notifications/progress). nil where nobody can be notified.
	Notify func(rpc.Notification)
}

// Info is what a bundle said of itself in the handshake.
type Info struct {
	Name            string
	Version         string
	Instructions    string
	ProtocolVersion string
	Capabilities    json.RawMessage // the capabilities object as sent; nil when there was none
	Raw             json.RawMessage // the whole result of initialize, or of server/discover, as sent
	Stateless       bool            // the connection speaks StatelessVersion

	offers map[string]json.RawMessage // the members of Capabilities
}

// Offers reports whether the bundle has the named capability, such as "prompts" or "logging".
func (i Info) Offers(capability string) bool { return i.offers[capability] != nil }
