package registrytest

import (
	"bytes"
	"fmt"
	"net"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Front is a kit.Proxy that can also respond to HTTP requests instead of the backend, and corrupt the backend's
// responses.
type Front struct {
	*kit.Proxy
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	fault   fault
	answers []answer // since the fault was set
	open    map[net.Conn]struct{}
}

// fault is what goes wrong with the next requests, after the first skip.
type fault struct {
	skip    int
	instead string // an HTTP response in place of the backend's; "" for none
	cut     int    // bytes after which a response breaks off; negative means never
	spoil   bool   // files get different bytes
}

var none = fault{cut: -1}

// answer is the size in bytes of a backend's response.
type answer struct{ head, all int }

// NewFront forwards a free port of 127.0.0.1 to target.
func NewFront(target string) (*Front, error) {
	proxy, err := kit.NewProxy(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it answers at once
	if err != nil {
		proxy.Close()
		return nil, fmt.Errorf("start a proxy for %s: %w", target, err)
	}
	f := &Front{Proxy: proxy, listener: listener, fault: none, open: map[net.Conn]struct{}{}}
	f.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.running.Go(func() { f.forward(conn) })
		}
	})
	return f, nil
}

// Address returns the address on which the front listens.
func (f *Front) Address() string { return f.listener.Addr().String() }

// Close closes the front and its connections.
func (f *Front) Close() {
	_ = f.listener.Close()
	f.Proxy.Close()
	f.mu.Lock()
	for conn := range f.open {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// set sets the next fault and returns the backend's responses since the last call.
func (f *Front) set(next fault) []answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := f.answers
	f.fault, f.answers = next, nil
	return answered
}

// keep records a connection as open or closed.
func (f *Front) keep(conn net.Conn, open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.open, conn); open {
		f.open[conn] = struct{}{}
	} else {
		_ = conn.Close()
	}
}

func (f *Front) forward(client net.Conn) {
	f.keep(client, true)
	defer f.keep(client, false)
	backend, err := net.Dial("tcp", f.Proxy.Address()) //nolint:noctx // it answers at once
	if err != nil {
		return
	}
	f.keep(backend, true)
	defer f.keep(backend, false)
	var both sync.WaitGroup
	both.Go(func() {
		defer func() { _, _ = client.Close(), backend.Close() }()
		f.copy(client, backend, f.answered)
	})
	both.Go(func() {
		defer func() { _, _ = client.Close(), backend.Close() }()
		f.copy(backend, client, func(piece []byte) (rest []byte, more bool) {
			instead, ok := f.asked(piece)
			if ok {
				_, _ = client.Write([]byte(instead))
				return nil, false
			}
			return piece, true
		})
	})
	both.Wait()
}

// copy forwards one direction as modified by change, until change returns false.
func (f *Front) copy(to, from net.Conn, change func([]byte) ([]byte, bool)) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			piece, more := change(buffer[:n])
			if _, err := to.Write(piece); err != nil || !more {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// asked records a request and returns the response to send instead of the backend's, if any.
func (f *Front) asked(piece []byte) (instead string, ok bool) {
	if !bytes.HasPrefix(piece, []byte("GET ")) && !bytes.HasPrefix(piece, []byte("POST ")) && !bytes.HasPrefix(piece, []byte("HEAD ")) {
		return "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, answer{})
	return f.fault.instead, f.fault.instead != "" && len(f.answers) > f.fault.skip
}

// answered records a piece of a response and corrupts it if the fault says so.
func (f *Front) answered(piece []byte) (rest []byte, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) == 0 {
		return piece, true
	}
	a := &f.answers[len(f.answers)-1]
	before := a.all
	a.all += len(piece)
	body := 0
	if end := bytes.Index(piece, []byte("\r\n\r\n")); before == 0 && end >= 0 {
		a.head, body = end+4, end+4
	}
	if len(f.answers) <= f.fault.skip {
		return piece, true
	}
	if f.fault.cut >= 0 && a.all >= f.fault.cut {
		return piece[:max(0, f.fault.cut-before)], false
	}
	if f.fault.spoil && (before > 0 || body > 0 && !bytes.ContainsAny(piece[body:min(len(piece), body+1)], "{[<")) {
		for i := body; i < len(piece); i += 7 {
			piece[i] ^= 0x55
		}
	}
	return piece, true
}
