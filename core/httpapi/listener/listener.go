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

// Options configure a Listener. A cap of 0 means no cap.
type Options struct {
	MaxConns    int                   // in total
	MaxPerPeer  int                   // per address; an IPv6 /64 is treated as one address
	TrustedPeer func(netip.Addr) bool // reports whether a peer, such as a proxy, is exempt from MaxPerPeer; nil means none is
	TLS         *tls.Config           // nil for connections without TLS
	Logger      hclog.Logger
}

// Listener is a net.Listener with caps on its connections. A connection beyond a cap replaces the one that has been
// idle the longest. If none is idle, the new connection is closed.
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

// Accept returns the next connection within the caps. It waits out temporary errors, such as a lack of file
// descriptors, and returns an error only when the listener is closed or broken.
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
		case isTemporary(err):
			l.warn("cannot accept connections; retrying", "error", err)
			if !l.evict(func(*Conn) bool { return true }) {
				time.Sleep(delay) //nolint:forbidigo // there is no notification when descriptors become free
				delay = min(2*delay, maxDelay)
			}
		default:
			return nil, err
		}
	}
}

// isTemporary reports whether an accept error concerns a single connection or a resource that will become free again.
// It is true for all errors except those that mean that the socket has stopped listening, because the resources that
// may run out are not known in advance: descriptors (EMFILE, ENFILE), memory (ENOMEM, ENOBUFS) or the user's epoll
// watches (ENOSPC).
func isTemporary(err error) bool {
	broken := []syscall.Errno{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EFAULT}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(broken, errno)
}

// admit counts a connection. If a cap is reached, it evicts an idle connection.
func (l *Listener) admit(conn net.Conn) (net.Conn, bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, true
	}
	c := newConn(tcp, l)
	if (l.options.TrustedPeer == nil || !l.options.TrustedPeer(c.peer)) && l.options.MaxPerPeer > 0 && l.count(c.peer) >= l.options.MaxPerPeer {
		if !l.evict(func(other *Conn) bool { return network(other.peer) == network(c.peer) }) {
			l.warn("a connection was refused: its address has too many connections", "address", c.peer, "limit", l.options.MaxPerPeer)
			return nil, false
		}
	}
	if l.options.MaxConns > 0 && l.total() >= l.options.MaxConns && !l.evict(func(*Conn) bool { return true }) {
		l.warn("a connection was refused: the server has too many connections", "limit", l.options.MaxConns)
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	l.peers[network(c.peer)]++
	if l.options.TLS != nil {
		return &SecureConn{Conn: c, tls: tls.Server(transport{c}, l.options.TLS)}, true
	}
	return c, true
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

// evict closes the connection that has been idle the longest among those for which eligible is true. It returns false
// if there is none.
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
	_ = oldest.TCPConn.Close() // its reader gets an error and abandons the connection
	return true
}

// closed removes a connection from the counts. It may be called more than once.
func (l *Listener) closed(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

// remove removes a connection from the counts. The caller holds mu.
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

// warn logs a warning at most once a second, because these warnings come in floods.
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

// network returns the network that is treated as one address: an IPv4 address, or the /64 of an IPv6 address, because
// one customer usually has a whole /64.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero prefix for the zero address
	return p
}

const (
	maxDefaultConns = 16384 // even if the descriptor limit is higher
	minDefaultConns = 64
)

// DefaultMaxConns returns the default connection cap. It leaves a quarter of the process's file descriptors, and at
// least 128, for everything else: apps, plugins, databases and files. The Go runtime has already raised the soft limit
// to the hard limit.
func DefaultMaxConns() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxDefaultConns
	}
	descriptors := int(min(limit.Cur, 1<<20))
	return max(minDefaultConns, min(maxDefaultConns, descriptors-max(descriptors/4, 128)))
}
