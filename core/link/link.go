package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// firstID is the first id of our own calls. The SDK counts its ids from 1 and makes a handful.
const firstID = 1 << 20

// Link is one open connection to a bundle. Its methods may be used by any number of goroutines.
type Link struct {
	o       Options
	log     hclog.Logger
	session *mcp.ClientSession
	conn    mcp.Connection // what the SDK's session runs on, without our tap
	out     sender
	info    Info
	greeted []byte      // the raw result of the handshake; written and read during it only
	open    atomic.Bool // the handshake is over

	nextID  atomic.Int64
	strays  tally
	changes changes
	watched watched

	mu      sync.Mutex
	calls   map[int64]*call // in flight, by id
	asked   map[any]context.CancelFunc
	closing bool

	life context.Context // ends when done is closed
	stop context.CancelFunc
	done chan struct{}
	err  error // set before done is closed
}

// Open connects over t and performs the handshake, bounded by ctx alone. Afterwards ctx is not used.
func Open(ctx context.Context, t mcp.Transport, o Options) (*Link, error) {
	l := &Link{o: o, log: o.Logger, calls: map[int64]*call{}, asked: map[any]context.CancelFunc{}, done: make(chan struct{})}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if l.log == nil {
		l.log = hclog.NewNullLogger()
	}
	if l.o.MaxCalls <= 0 {
		l.o.MaxCalls = defaultMaxCalls
	}
	l.nextID.Store(firstID)
	l.strays = tally{log: l.log, app: o.Name, sentence: "the app sent what nobody waits for"}
	l.changes = changes{wake: make(chan struct{}, 1)}
	l.watched = watched{wake: make(chan struct{}, 1), uris: map[string]struct{}{}}
	capabilities, err := clientCapabilities(o.Capabilities)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "ropewalk", Version: o.Version}, &mcp.ClientOptions{
		Capabilities:   capabilities,
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	revision := ProtocolVersion
	if o.Stateless {
		revision = StatelessVersion
	}
	session, err := client.Connect(ctx, tapped{l, t}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, l.refused(ctx, err)
	}
	l.session = session
	l.open.Store(true)
	if err := l.readGreeting(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if o.OnListChanged != nil {
		l.changes.start(l)
	}
	l.listen() //nolint:contextcheck // ctx is the handshake's; what is listened to lives as long as the link
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
	capabilities.RootsV2 = roots.Roots //nolint:staticcheck // as above
	return capabilities, nil
}

// refused makes the error of a handshake that failed, and closes what is open.
func (l *Link) refused(ctx context.Context, err error) error {
	l.fail(err)
	if l.conn != nil {
		_ = l.conn.Close()
	}
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		return remote
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	} else if l.greeted != nil {
		err = fmt.Errorf("%w: %w", ErrBadHandshake, err)
	}
	if f, ok := l.out.(*stdioConn); ok {
		if n := f.junk.count.Load(); n > 0 {
			return fmt.Errorf("handshake: %w (%d lines on its standard output were not MCP messages)", scrub(err), n)
		}
	}
	return fmt.Errorf("handshake: %w", scrub(err))
}

func (l *Link) readGreeting() error {
	var greeting struct {
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
	if err := json.Unmarshal(l.greeted, &greeting); err != nil {
		return fmt.Errorf("handshake: read the initialize result: %w", err)
	}
	if greeting.ProtocolVersion == "" && slices.Contains(greeting.Versions, StatelessVersion) {
		greeting.ProtocolVersion, greeting.ServerInfo = StatelessVersion, greeting.Meta.ServerInfo
	}
	l.info = Info{
		Name: greeting.ServerInfo.Name, Version: greeting.ServerInfo.Version, Instructions: greeting.Instructions,
		ProtocolVersion: greeting.ProtocolVersion, Capabilities: greeting.Capabilities, Raw: l.greeted,
		Stateless: greeting.ProtocolVersion == StatelessVersion,
	}
	if greeting.Capabilities == nil {
		return nil
	}
	if err := json.Unmarshal(greeting.Capabilities, &l.info.offers); err != nil {
		return fmt.Errorf("handshake: read the app's capabilities: %w", err)
	}
	return nil
}

// listen opens what a server sends by itself on, where that takes a stream of its own.
func (l *Link) listen() {
	if l.info.Stateless {
		go l.watch()
		return
	}
	remote, ok := l.conn.(*remoteConn)
	if !ok {
		return
	}
	remote.courier.version.Store(&l.info.ProtocolVersion)
	if tap, ok := l.out.(*messageTap); ok && remote.streams {
		go (&listener{l: l, tap: tap, conn: remote}).run(tap.ended)
	}
}

// Info is what the bundle said of itself.
func (l *Link) Info() Info { return l.info }

// Done is closed when the connection is gone.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err is why the connection is gone, nil while it is not. It wraps ErrClosed.
func (l *Link) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Close ends the connection; calls in flight get ErrClosed. A remote session is deleted, which
// takes 5 s at most. It may be called again.
func (l *Link) Close() error {
	l.fail(errors.New("closed by the server"))
	err := l.conn.Close()
	_ = l.session.Close() // its error is the end of the connection that was just closed
	return err
}

// drop declares the link dead and closes the connection without waiting for it.
func (l *Link) drop(cause error) {
	l.fail(cause)
	go func() { _ = l.conn.Close() }()
}

// fail declares the link dead, once.
func (l *Link) fail(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return
	}
	l.closing = true
	l.err = fmt.Errorf("%w: %w", ErrClosed, scrub(cause))
	close(l.done)
	for _, c := range l.calls {
		c.finish(answer{err: l.err}) // an answer that came before the end stands
	}
	l.stop()
}
