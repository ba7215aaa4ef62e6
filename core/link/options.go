package link

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/link/framing"
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

	// Report is called, for whoever runs the app, with a sentence about what the app did wrong, at growing intervals. It
	// must not block. nil reports nothing.
	Report func(sentence string)

	// OnListChanged is called when the app announces that its "tools", "prompts" or "resources" changed.
	// Calls come one after the other, on a goroutine of the link; announcements during a call are
	// combined into one more. It may use the link.
	OnListChanged func(kind string)

	// OnNotification receives every notification that does not certainly belong to one call, in wire order.
	// A log message may belong to one of several callers. It runs on the link's reader: it must not block and must
	// not use the link.
	OnNotification func(n rpc.Notification, callers []Caller)

	// Requests are the handlers, by method, of the app's requests to its client, whose params are passed
	// raw. The SDK answers other requests: pings, and an empty list of roots; it refuses the rest. Each
	// handler runs on a goroutine of its own, 64 at most.
	Requests map[string]RequestHandler

	// Capabilities are the client capabilities to advertise, as the JSON of the initialize
	// request. nil advertises none, so that well-behaved apps send no requests.
	Capabilities json.RawMessage
}

// RequestHandler answers one request of an app. callers are those whose requests were in flight when it came, in the
// order of the requests. ctx ends when the app cancels the request or the link closes. An *rpc.Error is returned to the
// app as it is.
type RequestHandler func(ctx context.Context, q rpc.Question, callers []Caller) (json.RawMessage, error)

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

// The errors of a link. They are wrapped with what happened.
var (
	// ErrClosed means that the connection is closed: the app ended, the remote server no longer knows
	// the session, or Close was called. Whether a call in flight had its effect is unknown.
	ErrClosed = errors.New("the connection to the app is closed")
	// ErrBusy means that too many calls are in flight. Nothing was sent.
	ErrBusy = errors.New("the app has too many calls in flight: try again later")
	// ErrTooLarge means that an answer was larger than the limit and was discarded.
	ErrTooLarge = framing.ErrTooLarge
	// ErrMalformed means that an answer was not a JSON-RPC response.
	ErrMalformed = framing.ErrMalformed
	// ErrParams means that params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = framing.ErrParams
	// ErrRefused means that the app answered the handshake with an error: it may support another revision.
	ErrRefused = errors.New("the app refused the handshake")
	// ErrBadHandshake means that the app answered the handshake with a result that no client can use, such
	// as an unknown revision.
	ErrBadHandshake = errors.New("the app's answer to the handshake cannot be used")
)
