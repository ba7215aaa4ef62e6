package registrytest

import (
	"bytes"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Front is a kit.Proxy that can also respond to HTTP requests instead of the backend, and corrupt the backend's
// responses.
type Front struct {
	*kit.Proxy

	mu      sync.Mutex
	fault   fault
	answers []size // since the fault was set
}

// fault is what goes wrong with the next requests, after the first skip.
type fault struct {
	skip    int
	instead string // an HTTP response in place of the backend's; "" for none
	cut     int    // bytes after which a response breaks off; negative means never
	spoil   bool   // files get different bytes
}

var none = fault{cut: -1}

// size is the size in bytes of a backend's response.
type size struct{ head, all int }

// NewFront forwards a free port of 127.0.0.1 to target.
func NewFront(target string) (*Front, error) {
	f := &Front{fault: none}
	var err error
	f.Proxy, err = kit.NewFilter(target, f)
	return f, err
}

// set sets the next fault and returns the backend's responses since the last call.
func (f *Front) set(next fault) []size {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := f.answers
	f.fault, f.answers = next, nil
	return answered
}

// Asked implements kit.Filter. It records a request.
func (f *Front) Asked(piece []byte) (answer []byte, instead bool) {
	if !bytes.HasPrefix(piece, []byte("GET ")) && !bytes.HasPrefix(piece, []byte("POST ")) && !bytes.HasPrefix(piece, []byte("HEAD ")) {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, size{})
	return []byte(f.fault.instead), f.fault.instead != "" && len(f.answers) > f.fault.skip
}

// Answered implements kit.Filter. It records a piece of a response and corrupts it if the fault says so.
func (f *Front) Answered(piece []byte) (rest []byte, more bool) {
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
