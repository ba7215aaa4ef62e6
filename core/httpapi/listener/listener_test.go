package listener

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// failing is a listener whose first calls to Accept fail.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return f.Listener.Accept()
}

func listen(t *testing.T, o Options) (*Listener, *bytes.Buffer) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	log := &bytes.Buffer{}
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Warn})
	return New(ln, o), log
}

func connect(t *testing.T, l *Listener, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

func accept(t *testing.T, l *Listener) *Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*Conn)
}

func ended(conn net.Conn) bool {
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

func TestAListenerWithoutDescriptorsKeepsAccepting(t *testing.T) {
	l, log := listen(t, Options{})
	l.Listener = &failing{l.Listener, []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EMFILE}}
	connect(t, l, "127.0.0.1")
	accept(t, l)
	if !strings.Contains(log.String(), "cannot accept connections") || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("the log does not mention the lack of descriptors: %q", log)
	}
}

func TestAListenerKeepsRunningIfTheSystemRunsOutOfResources(t *testing.T) {
	// ENOSPC: an app with the same user has all of the user's epoll watches (fs.epoll.max_user_watches).
	for _, err := range []error{syscall.ENOSPC, syscall.ENOMEM, syscall.ENOBUFS, os.NewSyscallError("epoll_ctl", syscall.ENOSPC)} {
		l, _ := listen(t, Options{})
		l.Listener = &failing{l.Listener, []error{&net.OpError{Op: "accept", Net: "tcp", Err: err}}}
		connect(t, l, "127.0.0.1")
		accept(t, l)
	}
}

func TestABrokenListenersErrorIsReturned(t *testing.T) {
	l, _ := listen(t, Options{})
	l.Listener = &failing{l.Listener, []error{&net.OpError{Op: "accept", Net: "tcp", Err: syscall.EBADF}}}
	if _, err := l.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v", err)
	}
}

func TestAListenerWithoutDescriptorsClosesTheLongestIdleConnectionFirst(t *testing.T) {
	l, _ := listen(t, Options{})
	first, second := connect(t, l, "127.0.0.1"), connect(t, l, "127.0.0.1")
	busy, idle := accept(t, l), accept(t, l)
	busy.setIdle(false)
	_ = idle
	l.Listener = &failing{l.Listener, []error{syscall.EMFILE}}
	connect(t, l, "127.0.0.1")
	accept(t, l)
	if !ended(second) {
		t.Error("the idle connection is still open")
	}
	if _, err := busy.Write([]byte("x")); err != nil || ended(first) {
		t.Errorf("the busy connection was closed: %v", err)
	}
}

func TestAClosedListenersErrorIsReturned(t *testing.T) {
	l, _ := listen(t, Options{})
	_ = l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionBeyondTheCapReplacesAnIdleOne(t *testing.T) {
	l, _ := listen(t, Options{MaxConns: 2})
	first, second := connect(t, l, "127.0.0.1"), connect(t, l, "127.0.0.2")
	accept(t, l).setIdle(false)
	accept(t, l)
	connect(t, l, "127.0.0.3")
	third := accept(t, l)
	if !ended(second) {
		t.Error("the idle connection is still open")
	}
	third.setIdle(false)
	refused := connect(t, l, "127.0.0.4")
	go func() { _, _ = l.Accept() }()
	if !ended(refused) {
		t.Error("a connection beyond the cap was accepted although none is idle")
	}
	_ = first
}

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	l, log := listen(t, Options{MaxPerPeer: 2})
	for range 2 {
		connect(t, l, "127.0.0.1")
		accept(t, l).setIdle(false)
	}
	refused := connect(t, l, "127.0.0.1")
	other := connect(t, l, "127.0.0.2")
	if c := accept(t, l); c.peer != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("accepted a connection from %s", c.peer)
	}
	if !ended(refused) || !strings.Contains(log.String(), "127.0.0.1") {
		t.Errorf("the third connection of an address was not refused: %q", log)
	}
	_ = other
}

func TestATrustedProxyMayHaveAnyNumberOfConnections(t *testing.T) {
	l, _ := listen(t, Options{MaxPerPeer: 1, TrustedPeer: netip.Addr.IsLoopback})
	for range 3 {
		connect(t, l, "127.0.0.1")
		accept(t, l).setIdle(false)
	}
}

func TestAClosedConnectionIsNoLongerCounted(t *testing.T) {
	l, _ := listen(t, Options{MaxConns: 1, MaxPerPeer: 1})
	for range 3 {
		connect(t, l, "127.0.0.1")
		c := accept(t, l)
		c.setIdle(false)
		_ = c.Close()
		_ = c.Close()
	}
	if len(l.conns) != 0 || len(l.peers) != 0 {
		t.Errorf("%d connections and %d addresses remain", len(l.conns), len(l.peers))
	}
}

func TestTheDefaultCapLeavesDescriptorsForEverythingElse(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur != limit.Max {
		t.Errorf("the soft limit %d was not raised to %d", limit.Cur, limit.Max)
	}
	if got := DefaultMaxConns(); got < minDefaultConns || uint64(got)+128 > limit.Cur {
		t.Errorf("%d connections for %d descriptors", got, limit.Cur)
	}
}
