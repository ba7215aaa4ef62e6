package link

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// ProtocolVersion is the revision that the handshake offers. An app may answer with an older one.
const ProtocolVersion = "2025-11-25"

// StatelessVersion is the revision without handshake and sessions: each request carries what a session
// would hold.
const StatelessVersion = "2026-07-28"

// The bounds of one link.
const (
	defaultMaxCalls        = 4096 // calls in flight
	maxQueuedNotifications = 1024 // of one call
	maxQueuedBytes         = 8 << 20
	maxRequests            = 64 // requests of the app that are being answered
)

// Options are how a link is opened. The zero value is usable.
type Options struct {
	Name     string       // the app's name, for log lines
	Version  string       // the server's own version, which the app receives
	Logger   hclog.Logger // nil logs nothing
	MaxCalls int          // calls in flight at once; 0 is 4096

	// Stateless tries StatelessVersion first (server/discover), and falls back to the handshake of the
	// other revisions; Info.Stateless says which one the app supports. Without it only the handshake is
	// tried.
	Stateless bool

	// Measure is called at the end of each call with how long it took; nil measures nothing.
	Measure func(method string, took time.Duration, err error)

	// OnListChanged is called when the app announces that its "tools", "prompts" or "resources" changed.
	// Calls come one after the other, on a goroutine of the link; announcements during a call are
	// combined into one more. It may use the link.
	OnListChanged func(kind string)

	// OnNotification receives every notification that does not certainly belong to one call, in wire order.
	// It runs on the link's reader: it must not block and must not use the link.
	OnNotification func(rpc.Notification)

	// Requests are the handlers, by method, of the app's requests to its client, whose params are passed
	// raw. The SDK answers other requests: pings, and an empty list of roots; it refuses the rest. Each
	// handler runs on a goroutine of its own, 64 at most.
	Requests map[string]RequestHandler

	// Capabilities are the client capabilities to advertise, as the JSON of the initialize
	// request. nil advertises none, so that well-behaved apps send no requests.
	Capabilities json.RawMessage
}

// RequestHandler answers one request of an app. ctx ends when the app cancels the request or
// the link closes. An *rpc.Error is returned to the app as it is.
type RequestHandler func(ctx context.Context, q Question) (json.RawMessage, error)

// Question is a request of an app to its client. Before StatelessVersion it does not name the call that it
// belongs to: Callers are those whose calls were in flight when it came.
type Question struct {
	Method  string
	Params  json.RawMessage
	Callers []any // Request.Caller of each, in the order of the calls

	// Notify sends the app a notification about the question before its answer, such as the client's
	// progress (notifications/progress). nil where that is not possible.
	Notify func(rpc.Notification)
}

// Info is what an app declared in the handshake.
type Info struct {
	Name            string
	Version         string
	Instructions    string
	ProtocolVersion string
	Capabilities    json.RawMessage // the capabilities object as sent; nil when there was none
	Raw             json.RawMessage // the whole result of initialize, or of server/discover, as sent
	Stateless       bool            // the connection uses StatelessVersion

	offers map[string]json.RawMessage // the members of Capabilities
}

// Offers reports whether the app has the named capability, such as "prompts" or "logging".
func (i Info) Offers(capability string) bool { return i.offers[capability] != nil }
