package mcphttp

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

const changedText = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// listen opens the session's GET stream, which ends when the response body is closed.
func (r *rig) listen(w who) (*http.Response, *bufio.Scanner) {
	r.Helper()
	resp := r.ask("GET", w, "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		r.Fatalf("GET: %d %v", resp.StatusCode, resp.Header)
	}
	return resp, bufio.NewScanner(resp.Body)
}

// next returns the data of the next event.
func next(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

func TestAToolChangeReachesTheGetStreamOnce(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	resp, lines := r.listen(w)
	defer resp.Body.Close()
	began := time.Now()
	for range 20 {
		r.fakeNamespace.changed()
	}
	atOnce := time.Since(began) < debounce
	if got := next(t, lines); got != changedText {
		t.Errorf("got %s", got)
	}
	<-time.After(3 * debounce)
	r.fakeNamespace.changed()
	if got := next(t, lines); got != changedText {
		t.Errorf("got %s", got)
	}
	r.say("DELETE", w, "")
	if rest := lines.Scan() && strings.HasPrefix(lines.Text(), "data"); rest && atOnce {
		t.Errorf("20 changes at once caused a second notification: %s", lines.Text())
	}
}

func TestAChangeWithoutAStreamIsSentWhenOneOpens(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	r.fakeNamespace.changed()
	<-time.After(3 * debounce)
	resp, lines := r.listen(w)
	defer resp.Body.Close()
	if got := next(t, lines); got != changedText {
		t.Errorf("got %s", got)
	}
}

func TestASecondGetStreamReplacesTheFirst(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	first, firstLines := r.listen(w)
	defer first.Body.Close()
	other, otherLines := r.listen(r.join(alice))
	defer other.Body.Close()
	second, lines := r.listen(w)
	defer second.Body.Close()
	for firstLines.Scan() {
	}
	if err := firstLines.Err(); err != nil {
		t.Errorf("the first stream should end cleanly: %v", err)
	}
	r.fakeNamespace.changed()
	if got := next(t, lines); got != changedText {
		t.Errorf("on the second stream: %s", got)
	}
	if got := next(t, otherLines); got != changedText {
		t.Errorf("on another session's stream: %s", got)
	}
}

func TestDeleteEndsTheGetStream(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	resp, lines := r.listen(w)
	defer resp.Body.Close()
	r.say("DELETE", w, "")
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream should end cleanly: %v", err)
	}
}

func TestADroppedGetStreamIsReplacedImmediatelyAndLeavesNothingBehind(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	warm, _ := r.listen(w)
	warm.Body.Close()
	nobodyListens := func() bool { return len(r.endpoint.listening()) == 0 }
	testkit.Eventually(t, "no stream is open", nobodyListens)
	r.client.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for i := range 100 {
		conn := r.dial()
		fmt.Fprint(conn, r.raw("GET", w, ""))
		status, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(status, " 200 ") {
			t.Fatalf("GET %d after a drop: %q %v", i, status, err)
		}
		conn.Close()
	}
	testkit.Eventually(t, fmt.Sprintf("no stream is open, and no more than the initial %d goroutines are left", before), func() bool {
		return nobodyListens() && runtime.NumGoroutine() <= before+3
	})
}

// listening returns the sessions with an open GET stream.
func (e *Endpoint) listening() []*session {
	return slices.DeleteFunc(e.live.All(), func(s *session) bool { return !s.Streaming() })
}

func TestAStalledReaderIsDisconnectedAndDelaysNoOneElse(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	w := r.join(alice)
	conn := r.dial()
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprint(conn, r.raw("GET", w, ""))
	if _, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s := r.endpoint.live.All()[0]
	begin := time.Now()
	frame := []byte(`"` + strings.Repeat("x", 64<<10) + `"`)
	for range 1000 {
		s.Notify(rpc.Notification{Method: "x", Params: frame})
	}
	if took := time.Since(begin); took > 9*time.Second {
		t.Errorf("the sender waited %v", took)
	}
	for len(r.endpoint.listening()) > 0 {
		if time.Since(begin) > time.Minute {
			t.Fatal("not cut off after 10 s")
		}
		<-time.After(50 * time.Millisecond)
	}
	again, _ := r.listen(w)
	again.Body.Close()
}

func TestAReaderThatStallsOnItsAnswerIsDisconnected(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	w := r.join(alice)
	conn := r.dial()
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprint(conn, r.raw("POST", w, callBody(1, "demo__wait", "{}")))
	<-r.fakeNamespace.started
	out := r.endpoint.live.All()[0].Calls()[0].out
	begin := time.Now()
	frame := []byte(`"` + strings.Repeat("x", 64<<10) + `"`)
	for range 200 {
		out.Notify(frame)
	}
	if took := time.Since(begin); took > 9*time.Second {
		t.Errorf("the sender waited %v", took)
	}
	for !out.Ended() {
		if time.Since(begin) > time.Minute {
			t.Fatal("not cut off after 10 s")
		}
		<-time.After(50 * time.Millisecond)
	}
	close(r.fakeNamespace.release)
	if err := <-r.fakeNamespace.ended; err != nil {
		t.Errorf("the tool was cancelled: %v", err)
	}
}

// Alice and Bob call at the same time, in two workspaces, over shared connections. Each answer and each progress event
// contains its caller and must reach that caller.
func TestAnswersAndProgressReachTheirOwnCaller(t *testing.T) {
	r := start(t, func(o *Options) { o.MaxSessions = 100 })
	pairs := []who{alice, {"bob", "ws_one", ""}, {"alice", "ws_two", ""}, {"bob", "ws_two", ""}}
	var group sync.WaitGroup
	for i := range 64 {
		w := r.join(pairs[i%len(pairs)])
		group.Go(func() {
			for n := range 25 {
				nonce := fmt.Sprintf("nonce-%d-%d", i, n)
				me := w.token + "/" + w.workspace
				_, body := r.say("POST", w, callBody(n, "demo__echo", `{"nonce":"`+nonce+`"}`)) // all sessions use the same IDs
				if !strings.Contains(body, nonce) || !strings.Contains(body, `"`+me+`"`) {
					t.Errorf("%s got %s", me, body)
				}
				_, body = r.say("POST", w, progressBody(n, nonce, 5))
				got := events(body)
				if len(got) != 6 {
					t.Errorf("%s: %d events: %s", me, len(got), body)
					continue
				}
				for _, text := range got[:5] {
					if !strings.Contains(text, nonce) || !strings.Contains(text, me) {
						t.Errorf("%s got %s", me, text)
					}
				}
			}
		})
	}
	group.Wait()
}
