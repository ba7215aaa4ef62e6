package link

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// ProtocolVersion is the revision offered in the handshake. An app may answer with an older one.
const ProtocolVersion = "2025-11-25"

// StatelessVersion is the revision without a handshake or sessions: each request carries the state that a
// session would hold.
const StatelessVersion = "2026-07-28"

// The limits for one link.
const (
	defaultMaxCalls        = 4096 // calls in flight
	maxQueuedNotifications = 1024 // per call
	maxQueuedBytes         = 8 << 20
	maxRequests            = 64 // requests from the app being answered
	maxRequestBytes        = 32 << 20
)

// Options configure a link. The zero value is usable.
type Options struct {
	Name     string       // the app's name, for log lines
	Version  string       // the server's own version, which is sent to the app
	Logger   hclog.Logger // nil disables logging
	MaxCalls int          // calls in flight at once; 0 means 4096

	// Stateless tries StatelessVersion (server/discover) first and falls back to the handshake of older
	// revisions; Info.Stateless reports which one is in use. If false, only the handshake is tried.
	Stateless bool

	// Measure is called at the end of each call with its duration. May be nil.
	Measure func(method string, took time.Duration, err error)

	// Report is called with a sentence that describes a mistake made by the app. It is meant for the person who runs the
	// app. Repeated problems are reported less and less often. It must not block. May be nil.
	Report func(sentence string)

	// OnListChanged is called when the app announces that its "tools", "prompts" or "resources" changed. Calls are
	// sequential, on one of the link's goroutines; announcements during a call are combined into one more call. It
	// may use the link.
	OnListChanged func(kind string)

	// OnNotification receives, in wire order, every notification that cannot be attributed to a single call. For a log
	// message, callers are the calls that it may belong to. OnNotification runs on the link's reader: it must not block or
	// use the link.
	OnNotification func(n rpc.Notification, callers []Caller)

	// Requests are the handlers, by method, for requests from the app to its client. Params are passed raw. The
	// SDK answers pings and roots/list (with an empty list) and rejects all other methods. Each handler runs on
	// its own goroutine, at most 64 at once.
	Requests map[string]RequestHandler

	// Capabilities are the client capabilities to advertise, as JSON for the initialize request. nil advertises none, so
	// that well-behaved apps send no requests.
	Capabilities json.RawMessage
}

// RequestHandler answers one request from an app. callers are the callers of the requests pending when it
// arrived, in the order of the requests. ctx ends when the app cancels the request or the link closes. An
// *rpc.Error is returned to the app unchanged.
type RequestHandler func(ctx context.Context, q rpc.Question, callers []Caller) (json.RawMessage, error)

// Info contains what an app declared in the handshake.
type Info struct {
	Name            string
	Version         string
	Instructions    string
	ProtocolVersion string
	Capabilities    json.RawMessage // the capabilities object as sent; nil if absent
	Raw             json.RawMessage // the whole result of initialize or server/discover, as sent
	Stateless       bool            // the connection uses StatelessVersion

	offers map[string]json.RawMessage // the members of Capabilities
}

// Offers reports whether the app has the named capability, such as "prompts" or "logging".
func (i Info) Offers(capability string) bool { return i.offers[capability] != nil }

// These errors are wrapped with details.
var (
	// ErrClosed means that the connection is closed: the app exited, the remote server no longer knows the session, or
	// Close was called. It is unknown whether a pending call took effect.
	ErrClosed = errors.New("the connection to the app is closed")
	// ErrBusy means that too many calls are pending. Nothing was sent.
	ErrBusy = errors.New("the app has too many pending calls; try again later")
	// ErrTooLarge means that a response was larger than the limit and was discarded.
	ErrTooLarge = rpc.ErrTooLarge
	// ErrMalformed means that a response was not a valid JSON-RPC response.
	ErrMalformed = rpc.ErrMalformed
	// ErrParams means that the params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = rpc.ErrParams
	// ErrRefused means that the app rejected the handshake with an error. It may support a different revision.
	ErrRefused = errors.New("the app refused the handshake")
	// ErrBadHandshake means that the app responded to the handshake with a result that no client can use, such as an
	// unknown revision.
	ErrBadHandshake = errors.New("the app's response to the handshake is not usable")
)
