package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
)

// A plugin that someone else started, for example under a debugger, can be attached. The slot's calls then go to that
// process, without time limits, while the slot's own process keeps running. When the attachment ends for any reason,
// calls go to the slot's own process again, including those that were cut off.

// detachDrain is how long an attached plugin's pending calls may take before it is detached. Longer calls are
// cut off and repeated on the slot's own process.
const detachDrain = 2 * time.Second

// shutdownTimeout is how long an attached plugin may take to acknowledge a shutdown.
const shutdownTimeout = time.Second

// ErrDetached reports that an attachment ended before the operator ended it.
var ErrDetached = errors.New("detached")

// attachment is the connection to a plugin that someone else started.
type attachment struct {
	conn   *grpc.ClientConn
	info   plugins.Info
	ended  chan struct{} // closed before the connection is, and when the plugin has exited
	end    func()        // closes ended; may be called more than once
	stop   chan struct{} // closed when the slot closes or is suspended
	closed chan struct{} // closed when the attachment has ended completely
}

// Attach directs a loaded plugin's calls to the process listening on a Unix socket, until ctx ends (the result
// is nil) or the process exits (ErrDetached). An empty name means the only plugin of that kind. attached is called
// after the process has accepted its settings and before the first call.
func (h *Host) Attach(ctx context.Context, kind plugins.Kind, name, socket string, attached func(plugins.Info)) error {
	var found []reporter
	for _, s := range h.loaded() {
		if st := s.status(); st.Kind == kind && (name == "" || st.Name == name || st.Adapter == name) {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("no %s plugin %q is loaded; `ropewalk plugin list` shows the loaded ones", kind, name)
	case len(found) > 1 && name == "":
		return fmt.Errorf("there are %d %s plugins; specify one of them (see `ropewalk plugin list`)", len(found), kind)
	}
	return found[len(found)-1].attach(ctx, socket, attached) // during a reload, the last slot replaces the others
}

func (s *slot[T]) attach(ctx context.Context, socket string, attached func(plugins.Info)) error {
	a, err := s.dialAttached(ctx, socket)
	if err != nil {
		return err
	}
	defer close(a.closed)
	defer func() { _ = a.conn.Close() }()
	g := &generation[T]{slot: s, attached: a, since: time.Now()}
	if g.client, err = s.newClient(a.conn, newestProtocol); err != nil {
		return err
	}
	s.mu.Lock()
	switch {
	case s.attached != nil:
		err = fmt.Errorf("another process is attached to the %s plugin %q; detach it first", s.target.kind, s.target.label)
	case s.closing || s.suspended != nil:
		err = fmt.Errorf("the %s plugin %q is being replaced; try again", s.target.kind, s.target.label)
	default:
		s.attached = g
		s.notify()
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.log.Warn("plugin attached: calls go to a process that the server did not start", "version", a.info.Version, "socket", socket)
	attached(a.info)
	defer s.detach(g)
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	watching.Go(func() {
		if a.conn.WaitForStateChange(watched, connectivity.Ready) {
			a.end()
		}
	})
	select {
	case <-ctx.Done():
		return nil
	case <-a.stop:
		return fmt.Errorf("%w: a reload replaced the plugin, or the server is shutting down", ErrDetached)
	case <-a.ended:
		return fmt.Errorf("%w: the attached process exited or closed its connection", ErrDetached)
	}
}

// dialAttached connects to a plugin and sends it the slot's settings.
func (s *slot[T]) dialAttached(ctx context.Context, socket string) (_ *attachment, err error) {
	if s.target.impl != nil {
		return nil, fmt.Errorf("the adapter %q runs inside the server; configure one with its own process", s.target.label)
	}
	conn, err := grpc.NewClient("unix:"+socket, append(tracing.PluginCalls(string(s.target.kind), s.target.name),
		grpc.WithTransportCredentials(insecure.NewCredentials()), host.DialOption(), grpc.WithIdleTimeout(0), grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(plugins.MaxMessage), grpc.MaxCallSendMsgSize(plugins.MaxMessage)))...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	a := &attachment{conn: conn, ended: make(chan struct{}), stop: make(chan struct{}), closed: make(chan struct{})}
	a.end = sync.OnceFunc(func() { close(a.ended) })
	if a.info, err = host.NewControl(conn).Info(ctx); err != nil {
		return nil, fmt.Errorf("the process on %s does not respond to Info: %w; it must serve without TLS, as it does if PLUGIN_CLIENT_CERT is not set", socket, err)
	}
	switch {
	case a.info.Kind != s.target.kind:
		return nil, fmt.Errorf("the process on %s is a plugin of kind %s, not %s", socket, a.info.Kind, s.target.kind)
	case isExclusive(a.info) || s.has(plugins.CapabilityExclusive, func(T) bool { return false }):
		return nil, fmt.Errorf("the plugin %q is exclusive: its backend allows one writer, which is the server's process", s.target.label)
	}
	if err := s.secrets.redactError(host.NewControl(conn).Configure(ctx, s.host.settings(s.target))); err != nil {
		return nil, fmt.Errorf("the process on %s does not accept the plugin's settings: %w", socket, err)
	}
	return a, nil
}

// detach directs new calls to the slot's own process, waits for pending ones and asks the attached process to
// exit.
func (s *slot[T]) detach(g *generation[T]) {
	s.mu.Lock()
	s.attached = nil
	s.notify()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), detachDrain)
	defer cancel()
	for idle := false; !idle; {
		s.mu.Lock()
		idle = g.inFlight == 0 || isClosed(g.attached.ended)
		changed := s.changed
		s.mu.Unlock()
		if idle {
			break
		}
		select {
		case <-changed:
		case <-g.attached.ended:
		case <-ctx.Done():
			idle = true
		}
	}
	g.attached.end()
	ctx, cancel = context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	// An error is expected: a process stopped at a breakpoint does not respond, and a process that has exited cannot.
	_ = g.attached.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	s.log.Info("plugin detached: calls go to the server's own process", "plugin", s.target.title())
}

// endAttachment detaches the attached plugin, if any, and returns when that is done.
func (s *slot[T]) endAttachment() {
	s.mu.Lock()
	g := s.attached
	if g != nil && !isClosed(g.attached.stop) {
		close(g.attached.stop)
	}
	s.mu.Unlock()
	if g != nil {
		<-g.attached.closed
	}
}

// withoutDeadline returns ctx without its deadline. It is still cancelled when ctx is.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return free, func() { stop(); cancel() }
}
