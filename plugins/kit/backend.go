package kit

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Backend makes an implementation's backend unavailable and available again.
type Backend interface {
	Stop(ctx context.Context) error  // connections break, and new ones are refused
	Stall(ctx context.Context) error // connections stay open, but nothing is answered
	Start(ctx context.Context) error // everything works again
}

// Meter is a Backend that shows whether an implementation continues work that its caller gave up on.
type Meter interface {
	Backend
	Slow(ctx context.Context) error // until Start, each connection gets SlowPace bytes per second
	Sent() int64                    // total bytes sent to the implementation
}

// Cutter is a Backend that breaks its connections at a chosen moment of an operation.
type Cutter interface {
	Backend
	Writes() int64     // total pieces that the implementation has sent to the backend
	CutAfter(n int64)  // breaks all connections once, after n more pieces have reached the backend and before it can answer
	CutBefore(n int64) // breaks all connections once, before the nth piece from now reaches the backend
}

// SlowPace is how many bytes per second a slow backend sends.
const SlowPace = 10 << 10

// slowStep is the interval at which a slow backend sends.
const slowStep = 25 * time.Millisecond

// Proxy is a Backend in front of a TCP address. It is also a Meter and a Cutter.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	sent atomic.Int64

	mu      sync.Mutex
	stopped bool
	slow    bool
	stalled chan struct{} // nil unless stalled; closed by Start
	conns   map[net.Conn]struct{}
	writes  int64
	cut     int64 // number of the write after which connections break; 0 for none
	before  bool  // connections break before it instead
}

// NewProxy starts a proxy on a free port of 127.0.0.1 that forwards to target.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, fmt.Errorf("start a proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.serve)
	return p, nil
}

// Address returns the address that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Stop breaks all connections; new ones are closed at once.
func (p *Proxy) Stop(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for conn := range p.conns {
		_ = conn.Close()
	}
	return nil
}

// Stall keeps all connections open and forwards nothing.
func (p *Proxy) Stall(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
	return nil
}

// Slow implements Meter.
func (p *Proxy) Slow(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = true
	return nil
}

// Sent implements Meter.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Writes implements Cutter. TCP may merge writes that follow each other without waiting for an answer.
func (p *Proxy) Writes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// CutAfter implements Cutter.
func (p *Proxy) CutAfter(n int64) { p.setCut(n, false) }

// CutBefore implements Cutter.
func (p *Proxy) CutBefore(n int64) { p.setCut(n, true) }

func (p *Proxy) setCut(n int64, before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.before = p.writes+n, before
}

// count counts a write to the backend, and reports whether connections break before or after it.
func (p *Proxy) count() (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	if p.writes != p.cut {
		return false, false
	}
	p.cut = 0
	return p.before, !p.before
}

// breakAll breaks all connections. New ones are accepted.
func (p *Proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Start forwards again.
func (p *Proxy) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped, p.slow, p.cut = false, false, 0
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
	return nil
}

// Close stops the proxy and closes its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	_ = p.Start(context.Background())
	_ = p.Stop(context.Background())
	p.running.Wait()
}

func (p *Proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.forward(conn) })
	}
}

func (p *Proxy) forward(client net.Conn) {
	defer p.drop(client)
	if !p.add(client) {
		return
	}
	backend, err := net.DialTimeout("tcp", p.target, 5*time.Second) //nolint:noctx // it has a timeout of its own
	if err != nil {
		return
	}
	defer p.drop(backend)
	if !p.add(backend) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(&counted{backend, client, p}, client) })
	both.Go(func() { p.copy(&metered{client, p}, backend) })
	both.Wait()
}

// copy forwards one direction, and closes both connections when it ends.
func (p *Proxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.waitWhileStalled()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// counted is a connection to the backend that may break at a write.
type counted struct {
	net.Conn
	client net.Conn
	proxy  *Proxy
}

func (c *counted) Write(data []byte) (int, error) {
	before, after := c.proxy.count()
	if before {
		c.proxy.breakAll()
		return 0, net.ErrClosed
	}
	if after {
		_ = c.client.Close() // first, so that no answer gets through
	}
	n, err := c.Conn.Write(data)
	if after {
		c.proxy.breakAll()
	}
	return n, err
}

// metered is a client's connection, which is sent little at a time while the backend is slow.
type metered struct {
	net.Conn
	proxy *Proxy
}

func (m *metered) Write(data []byte) (int, error) {
	written := 0
	for written < len(data) {
		piece := data[written:]
		if m.proxy.isSlow() {
			piece = piece[:min(len(piece), SlowPace*int(slowStep)/int(time.Second))]
			<-time.After(slowStep)
		}
		n, err := m.Conn.Write(piece)
		written += n
		m.proxy.sent.Add(int64(n))
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (p *Proxy) isSlow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow
}

func (p *Proxy) waitWhileStalled() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (p *Proxy) add(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = struct{}{}
	return !p.stopped
}

func (p *Proxy) drop(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	_ = conn.Close()
}
