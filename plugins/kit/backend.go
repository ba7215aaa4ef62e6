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
	Writes() int64 // total pieces that the implementation has sent to the backend
	// Cut breaks all connections once: before the nth piece from now reaches the backend, or after it has and before the
	// backend can answer.
	Cut(n int64, before bool)
}

// SlowPace is how many bytes per second a slow backend sends.
const SlowPace = 10 << 10

// slowStep is the interval at which a slow backend sends.
const slowStep = 25 * time.Millisecond

// Filter sees what passes a Proxy, and may change it.
type Filter interface {
	// Asked returns the answer that the client gets instead of the backend's, and whether there is one. The connection
	// then ends.
	Asked(piece []byte) (answer []byte, instead bool)
	// Answered returns the part of a piece from the backend that the client gets. The connection
	// then ends unless more is set.
	Answered(piece []byte) (rest []byte, more bool)
}

// unfiltered is the Filter that changes nothing.
type unfiltered struct{}

func (unfiltered) Asked([]byte) (answer []byte, instead bool)     { return nil, false }
func (unfiltered) Answered(piece []byte) (rest []byte, more bool) { return piece, true }

// Proxy is a Backend in front of a TCP address. It is also a Meter and a Cutter.
type Proxy struct {
	target   string
	filter   Filter
	listener net.Listener
	running  sync.WaitGroup

	sent          atomic.Int64
	stopped, slow atomic.Bool

	mu      sync.Mutex
	stalled chan struct{} // nil unless stalled; closed by Start
	conns   map[net.Conn]struct{}
	writes  int64
	cut     int64 // number of the write after which connections break; 0 for none
	before  bool  // connections break before it instead
}

// NewProxy starts a proxy on a free port of 127.0.0.1 that forwards to target.
func NewProxy(target string) (*Proxy, error) { return NewFilter(target, unfiltered{}) }

// NewFilter is NewProxy for a proxy with a filter.
func NewFilter(target string, filter Filter) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, fmt.Errorf("start a proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, filter: filter, listener: listener, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.serve)
	return p, nil
}

// Address returns the address that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Stop breaks all connections; new ones are closed immediately.
func (p *Proxy) Stop(context.Context) error {
	p.stopped.Store(true)
	p.breakAll()
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
	p.slow.Store(true)
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

// Cut implements Cutter.
func (p *Proxy) Cut(n int64, before bool) {
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
	p.stopped.Store(false)
	p.slow.Store(false)
	p.cut = 0
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
	both.Go(func() { p.copy(client, backend, p.ask) })
	both.Go(func() { p.copy(backend, client, p.answer) })
	both.Wait()
}

// copy forwards the pieces of one direction, until forward returns false, and closes both connections when it ends.
func (p *Proxy) copy(from, to net.Conn, forward func(from, to net.Conn, piece []byte) (more bool)) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.waitWhileStalled()
		if n > 0 && !forward(from, to, buffer[:n]) || err != nil {
			return
		}
	}
}

// ask forwards a piece to the backend. The connections may break before or after it.
func (p *Proxy) ask(client, backend net.Conn, piece []byte) (more bool) {
	if answer, instead := p.filter.Asked(piece); instead {
		_, _ = client.Write(answer)
		return false
	}
	before, after := p.count()
	if before {
		p.breakAll()
		return false
	}
	if after {
		_ = client.Close() // first, so that no answer gets through
	}
	_, err := backend.Write(piece)
	if after {
		p.breakAll()
	}
	return err == nil
}

// answer forwards a piece to the client, little at a time while the backend is slow.
func (p *Proxy) answer(_, client net.Conn, piece []byte) (more bool) {
	rest, more := p.filter.Answered(piece)
	for len(rest) > 0 {
		next := rest
		if p.slow.Load() {
			next = rest[:min(len(rest), SlowPace*int(slowStep)/int(time.Second))]
			<-time.After(slowStep)
		}
		n, err := client.Write(next)
		p.sent.Add(int64(n))
		if rest = rest[n:]; err != nil {
			return false
		}
	}
	return more
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
	return !p.stopped.Load()
}

func (p *Proxy) drop(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	_ = conn.Close()
}
