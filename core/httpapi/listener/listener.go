package listener

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options bound a Listener. A cap of 0 means none.
type Options struct {
	MaxConns    int                   // in total
	MaxPerPeer  int                   // of one address; an IPv6 /64 counts as one
	TrustedPeer func(netip.Addr) bool // reports peers, such as proxies, that MaxPerPeer does not apply to; nil means none
	TLS         *tls.Config           // nil for connections without TLS
	Logger      hclog.Logger
}

// Listener is a net.Listener with caps. A connection beyond a cap takes the place of the one that
// has been idle longest; when none is idle, the new one is closed.
type Listener struct {
	net.Listener
	options Options

	mu       sync.Mutex
	conns    map[*Conn]struct{}
	peers    map[netip.Prefix]int
	warnedAt time.Time
}

// New wraps a listener.
func New(ln net.Listener, o Options) *Listener {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Listener{Listener: ln, options: o, conns: make(map[*Conn]struct{}), peers: make(map[netip.Prefix]int)}
}

const (
	firstDelay = 5 * time.Millisecond
	maxDelay   = time.Second
)

// Accept returns the next connection within the caps. Errors that pass, such as a lack of file
// descriptors, are waited out: it returns an error only when the listener is closed or broken.
func (l *Listener) Accept() (net.Conn, error) {
	delay := firstDelay
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c, ok := l.admit(conn); ok {
				return c, nil
			}
			_ = conn.Close()
			delay = firstDelay
		case passing(err):
			l.warn("connections cannot be accepted; trying again", "error", err)
			if !l.evict(func(*Conn) bool { return true }) {
				time.Sleep(delay) //nolint:forbidigo // nothing tells when the system has descriptors again
				delay = min(2*delay, maxDelay)
			}
		default:
			return nil, err
		}
	}
}

// passing reports whether an accept error is one of the connection, or of a resource that will be free again:
// any but those that say that this is no listening socket any more. What the system may lack is not known in
// advance: descriptors (EMFILE, ENFILE), memory (ENOMEM, ENOBUFS), the epoll watches of the user (ENOSPC).
func passing(err error) bool {
	broken := []syscall.Errno{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EFAULT}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(broken, errno)
}

// admit counts a connection, evicting an idle one where a cap is reached.
func (l *Listener) admit(conn net.Conn) (net.Conn, bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, true
	}
	c := newConn(tcp, l)
	if !l.exempt(c.peer) && l.options.MaxPerPeer > 0 && l.count(c.peer) >= l.options.MaxPerPeer {
		if !l.evict(func(other *Conn) bool { return network(other.peer) == network(c.peer) }) {
			l.warn("a connection was refused: its address has too many", "address", c.peer, "limit", l.options.MaxPerPeer)
			return nil, false
		}
	}
	if l.options.MaxConns > 0 && l.total() >= l.options.MaxConns && !l.evict(func(*Conn) bool { return true }) {
		l.warn("a connection was refused: there are too many", "limit", l.options.MaxConns)
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	l.peers[network(c.peer)]++
	if l.options.TLS != nil {
		return secure(c, l.options.TLS), true
	}
	return c, true
}

func (l *Listener) exempt(peer netip.Addr) bool {
	return l.options.TrustedPeer != nil && l.options.TrustedPeer(peer)
}

func (l *Listener) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

func (l *Listener) count(peer netip.Addr) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers[network(peer)]
}

// evict closes the connection that has been idle longest among those that eligible reports. It
// returns false when there is none.
func (l *Listener) evict(eligible func(*Conn) bool) bool {
	l.mu.Lock()
	var oldest *Conn
	var since int64
	for c := range l.conns {
		if at := c.idleSince.Load(); at != 0 && eligible(c) && (oldest == nil || at < since) {
			oldest, since = c, at
		}
	}
	if oldest != nil {
		l.remove(oldest)
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.TCPConn.Close() // its reader sees the end and gives the connection up
	return true
}

// closed forgets a connection. It may be called again.
func (l *Listener) closed(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

// remove forgets a connection, under mu.
func (l *Listener) remove(c *Conn) {
	if _, known := l.conns[c]; !known {
		return
	}
	delete(l.conns, c)
	peer := network(c.peer)
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// warn logs at most once a second: what it tells of comes in floods.
func (l *Listener) warn(message string, args ...any) {
	l.mu.Lock()
	now := time.Now()
	quiet := now.Sub(l.warnedAt) < time.Second
	if !quiet {
		l.warnedAt = now
	}
	l.mu.Unlock()
	if !quiet {
		l.options.Logger.Warn(message, args...)
	}
}

// network is what counts as one address: an IPv4 address, or the /64 of an IPv6 address, which is
// what one customer has.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero prefix for the zero address
	return p
}

const (
	mostConns  = 16384 // connections, whatever the limit on descriptors
	leastConns = 64
)

// DefaultMaxConns leaves a quarter of the process's file descriptors, at least 128, for everything
// that is not a connection: apps, plugins, databases and files. The Go runtime has raised the soft
// limit to the hard one when the process started.
func DefaultMaxConns() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return mostConns
	}
	descriptors := int(min(limit.Cur, 1<<20))
	return max(leastConns, min(mostConns, descriptors-max(descriptors/4, 128)))
}
