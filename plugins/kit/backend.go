package kit

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Backend takes the backend of an implementation away and brings it back.
type Backend interface {
	Stop(ctx context.Context) error  // connections break, and new ones are refused
	Stall(ctx context.Context) error // connections stay, and nothing is answered
	Start(ctx context.Context) error // everything works again
}

// Proxy is a Backend in front of a TCP address.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	stalled chan struct{} // nil unless stalled; closed by Start
	conns   map[net.Conn]struct{}
}

// NewProxy forwards a free port of 127.0.0.1 to target.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it answers at once
	if err != nil {
		return nil, fmt.Errorf("start a proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.serve)
	return p, nil
}

// Address is where the proxy listens.
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

// Stall keeps all connections and forwards nothing.
func (p *Proxy) Stall(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
	return nil
}

// Start forwards again.
func (p *Proxy) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = false
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
	return nil
}

// Close ends the proxy and its connections.
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
	backend, err := net.DialTimeout("tcp", p.target, 5*time.Second) //nolint:noctx // bounded by its own time
	if err != nil {
		return
	}
	defer p.drop(backend)
	if !p.add(backend) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(backend, client) })
	both.Go(func() { p.copy(client, backend) })
	both.Wait()
}

// copy forwards one direction, and ends the other one with it.
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
