package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Link is one open connection to an app. Its methods are safe for concurrent use.
type Link struct {
	o         Options
	log       hclog.Logger
	session   *mcp.ClientSession
	conn      mcp.Connection // the connection underneath the one that the SDK's session uses
	out       sender
	info      Info
	handshake []byte      // the raw handshake result; accessed only during the handshake
	open      atomic.Bool // the handshake is complete
	discovery discovery

	nextID        atomic.Int64
	discarded     rpc.DiscardLog
	warned        atomic.Pointer[string] // the last warning about the lists
	listChanges   listChanges
	subscriptions subscriptions

	mu          sync.Mutex
	calls       map[int64]*call            // pending, by id
	appRequests map[any]context.CancelFunc // being answered, by id
	unsent      int                        // appRequests, and requests whose responses are being sent
	asked       int                        // bytes of their params and ids
	closing     bool

	giveUp context.CancelCauseFunc // aborts the handshake; set only during the handshake

	life context.Context // cancelled when done is closed
	stop context.CancelFunc
	done chan struct{}
	err  error // set before done is closed
}

// Open connects over t and performs the handshake. ctx bounds both and is not used afterwards.
func Open(ctx context.Context, t mcp.Transport, o Options) (*Link, error) {
	l, err := open(ctx, t, o)
	if err != nil && o.Stateless && l.failedDiscovery(ctx, err) {
		o.Stateless = false
		l, err = open(ctx, t, o)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// open makes one attempt to open a link. It returns the link even on failure, so that Open can decide whether to try
// again.
func open(ctx context.Context, t mcp.Transport, o Options) (*Link, error) {
	l := &Link{o: o, log: o.Logger, calls: map[int64]*call{}, appRequests: map[any]context.CancelFunc{}, done: make(chan struct{})}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if l.log == nil {
		l.log = hclog.NewNullLogger()
	}
	if l.o.MaxCalls <= 0 {
		l.o.MaxCalls = defaultMaxCalls
	}
	l.nextID.Store(rpc.LastSDKID)
	l.discarded = rpc.DiscardLog{Logger: l.log, Message: "app sent messages that do not belong to any call"}
	l.listChanges = listChanges{wake: make(chan struct{}, 1)}
	l.subscriptions = subscriptions{wake: make(chan struct{}, 1), uris: map[string]struct{}{}}
	capabilities, err := clientCapabilities(o.Capabilities)
	if err != nil {
		return l, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "ropewalk", Version: o.Version}, &mcp.ClientOptions{
		Capabilities:   capabilities,
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	revision := ProtocolVersion
	if o.Stateless {
		revision = StatelessVersion
	}
	handshake, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	l.giveUp = giveUp
	defer l.discovery.end()
	session, err := client.Connect(handshake, interceptedTransport{l, t}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return l, l.handshakeError(ctx, err)
	}
	l.session = session
	l.open.Store(true)
	if err := l.readHandshake(); err != nil {
		return l, errors.Join(err, l.Close())
	}
	if o.OnListChanged != nil {
		l.listChanges.start(l)
	}
	l.receiveServerMessages(ctx) //nolint:contextcheck // ctx is the handshake's; the stream lives as long as the link
	return l, nil
}

func clientCapabilities(raw json.RawMessage) (*mcp.ClientCapabilities, error) {
	capabilities := &mcp.ClientCapabilities{}
	if len(raw) == 0 {
		return capabilities, nil
	}
	if err := json.Unmarshal(raw, capabilities); err != nil {
		return nil, fmt.Errorf("client capabilities: %w", err)
	}
	var roots struct {
		Roots *mcp.RootCapabilities `json:"roots"` //nolint:staticcheck // bundles of older revisions still ask for roots
	}
	if err := json.Unmarshal(raw, &roots); err != nil {
		return nil, fmt.Errorf("client capabilities: %w", err)
	}
	capabilities.RootsV2 = roots.Roots //nolint:staticcheck // bundles of older revisions still ask for roots
	return capabilities, nil
}

// handshakeError returns the error for a failed handshake and closes the connection.
func (l *Link) handshakeError(ctx context.Context, err error) error {
	l.fail(err)
	if l.conn != nil {
		_ = l.conn.Close()
	}
	if failed, ok := errors.AsType[*remote.Error](err); ok {
		return failed
	}
	if failed := l.discovery.refused(); failed != nil && ctx.Err() == nil {
		return failed
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if answer, answered := errors.AsType[*jsonrpc.Error](err); answered {
		err = refused(err, answer)
	} else if l.handshake != nil {
		err = fmt.Errorf("%w: %w", ErrBadHandshake, err)
	}
	if c, ok := l.conn.(*remote.Conn); ok && !isServerResponse(err) && l.handshake == nil && ctx.Err() == nil {
		return c.NotMCP(err)
	}
	if c, ok := l.out.(*stdioConn); ok {
		if n := c.Discarded(); n > 0 {
			return fmt.Errorf("handshake: %w (%d lines on its standard output were not MCP messages)", remote.SafeError(err), n)
		}
	}
	return fmt.Errorf("handshake: %w", remote.SafeError(err))
}

// rejectedCode and rejectedMessage identify the error that the SDK substitutes for a response if the transport failed.
const (
	rejectedCode    = -32005
	rejectedMessage = "rejected by transport"
)

// refused returns the error for a handshake that the app answered with an error. It keeps only the response's message,
// because the SDK's error also mentions the SDK call that failed.
func refused(err error, answer *jsonrpc.Error) error {
	if !isServerResponse(err) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, answer)
}

// isServerResponse reports whether a handshake error is a response from the server, not one that the transport
// substituted.
func isServerResponse(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	switch answer.Code {
	case remote.CodeMalformed, remote.CodeTooLarge:
		return false
	case rejectedCode:
		return answer.Message != rejectedMessage
	}
	return true
}

func (l *Link) readHandshake() error {
	var result struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Versions        []string        `json:"supportedVersions"`
		Capabilities    json.RawMessage `json:"capabilities"`
		Instructions    string          `json:"instructions"`
		ServerInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"serverInfo"`
		Meta struct {
			ServerInfo struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(l.handshake, &result); err != nil {
		return fmt.Errorf("handshake: read the initialize result: %w", err)
	}
	if result.ProtocolVersion == "" && slices.Contains(result.Versions, StatelessVersion) {
		result.ProtocolVersion, result.ServerInfo = StatelessVersion, result.Meta.ServerInfo
	}
	l.info = Info{
		Name: clipped(result.ServerInfo.Name), Version: clipped(result.ServerInfo.Version), Instructions: result.Instructions,
		ProtocolVersion: result.ProtocolVersion, Capabilities: result.Capabilities, Raw: l.handshake,
		Stateless: result.ProtocolVersion == StatelessVersion,
	}
	if result.Capabilities == nil {
		return nil
	}
	if err := json.Unmarshal(result.Capabilities, &l.info.offers); err != nil {
		return fmt.Errorf("handshake: read the app's capabilities: %w", err)
	}
	return nil
}

// clipped shortens the name or the version that an app states. The version is stored with each of the app's pins.
func clipped(text string) string {
	const most = 200 // bytes
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// streamWait is how long an app's start waits for the response to the stream request. Behind a buffering proxy, the
// response arrives only together with the server's first message.
const streamWait = time.Second

// receiveServerMessages opens the stream for messages that the server sends unprompted, if the transport or the
// revision needs one. It waits up to streamWait for the server's response. Until the stream is open, many servers drop
// the questions that they ask during a call, and list changes are not reported.
func (l *Link) receiveServerMessages(ctx context.Context) {
	if l.info.Stateless {
		l.openSubscriptions(ctx)
		return
	}
	server, ok := l.conn.(*remote.Conn)
	if !ok {
		return
	}
	server.SetProtocolVersion(l.info.ProtocolVersion)
	c, ok := l.out.(*messageConn)
	if !ok {
		return
	}
	answered := make(chan struct{})
	go server.ReadServerStream(c.ended, remote.ServerStream{Answered: func() { close(answered) }, Receive: c.receive, Lost: l.drop})
	select {
	case <-answered:
	case <-ctx.Done():
	case <-time.After(streamWait):
	}
}

// Info returns what the app declared in the handshake.
func (l *Link) Info() Info { return l.info }

// Done is closed when the connection is closed.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err returns why the connection was closed, or nil while it is open. The error wraps ErrClosed.
func (l *Link) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Close closes the connection; pending calls return ErrClosed. It deletes a remote session, which takes up to 5 s. It
// is safe to call more than once.
func (l *Link) Close() error {
	l.fail(errors.New("closed by Ropewalk"))
	err := l.conn.Close()
	_ = l.session.Close() // the connection was just closed, so this error adds nothing
	return err
}

// drop fails the link and closes the connection in the background.
func (l *Link) drop(cause error) {
	l.fail(cause)
	go func() { _ = l.conn.Close() }()
}

// fail marks the link as closed, once.
func (l *Link) fail(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return
	}
	l.closing = true
	l.err = fmt.Errorf("%w: %w", ErrClosed, remote.SafeError(cause))
	close(l.done)
	for _, c := range l.calls {
		c.finish(nil, l.err) // an earlier response is kept
	}
	l.stop()
}
