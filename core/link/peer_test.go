package link

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() hclog.Logger { return hclog.NewNullLogger() }

// peer is an app at the other end of a link over standard streams. The test writes its messages.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out io.Writer
	end func()

	initialize message // the initialize request
}

// message is a message that a peer reads.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// pipes returns a link's streams and the peer at their other ends. They are operating system pipes, as for a
// real process.
func pipes(t *testing.T) (in io.WriteCloser, out io.ReadCloser, p *peer) {
	t.Helper()
	toPeer, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromPeer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	end := func() { _, _ = toPeer.Close(), fromPeer.Close() }
	t.Cleanup(end)
	return in, out, &peer{t: t, in: bufio.NewReader(toPeer), out: fromPeer, end: end}
}

// dial opens a link to a peer.
func dial(t *testing.T, fo stdio.Options, o Options) (*Link, *peer) {
	t.Helper()
	in, out, p := pipes(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		p.handshake()
	}()
	l, err := Open(t.Context(), stdio.New(in, out, fo), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	<-answered
	t.Cleanup(func() { _ = l.Close() })
	return l, p
}

func (p *peer) handshake() {
	m := p.read()
	p.initialize = m
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"x":{"y":1}},"serverInfo":{"name":"peer","version":"1.2"},"instructions":"be kind"}}`, m.ID)
	p.read() // notifications/initialized
}

// read returns the next message, or the zero message when the link is closed.
func (p *peer) read() message {
	var m message
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return m
	}
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Errorf("the link sent %q: %v", line, err)
	}
	return m
}

func (p *peer) send(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

func (p *peer) answer(m message, result string) {
	p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// progress returns a progress notification with m's own token.
func (p *peer) progress(m message, n int) {
	var params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, params.Meta.ProgressToken, n)
}

// outcome is a call's result or error.
type outcome struct {
	result json.RawMessage
	err    error
}

// begin starts a call in the background.
func begin(t *testing.T, l *Link, params string, notify func(rpc.Notification)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(params), Notify: notify})
		done <- outcome{result, err}
	}()
	return done
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing was received for a minute")
		panic("unreachable")
	}
}

func text64K() string {
	return strings.Repeat("All work and no play makes Jack a dull boy. ", 64<<10/44)
}
