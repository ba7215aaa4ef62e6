package mcphttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// dial opens a raw connection to the rig.
func (r *rig) dial() net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.Fatal(err)
	}
	return conn
}

// raw returns the text of a request.
func (r *rig) raw(method string, w who, body string, extra ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Workspace-Id: %s\r\nAccept: application/json, text/event-stream\r\n", method, r.addr, w.token, w.workspace)
	if w.session != "" {
		fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\n", w.session)
	}
	for _, e := range extra {
		b.WriteString(e + "\r\n")
	}
	if method == "POST" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

func TestPipelinedRequestsFromTwoCallersGetTheirOwnAnswers(t *testing.T) {
	r := start(t, nil)
	a, b := r.join(alice), r.join(who{token: "bob", workspace: "ws_two"})
	conn := r.dial()
	defer conn.Close()
	go func() {
		for i := range 50 {
			fmt.Fprint(conn, r.raw("POST", a, callBody(i, "demo__echo", "{}"))+r.raw("POST", b, callBody(i, "demo__echo", "{}"))+r.raw("POST", a, progressBody(i, "t", 2)))
		}
	}()
	in := bufio.NewReader(conn)
	for i := range 50 {
		for _, want := range []string{"alice/ws_one", "bob/ws_two", "alice/ws_one"} {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || strings.Count(string(body), want) == 0 || !strings.Contains(string(body), fmt.Sprintf(`"id":%d`, i)) {
				t.Fatalf("round %d: %s %v, want %s", i, body, err, want)
			}
		}
	}
}

func TestAClientThatLeavesItsStreamedAnswerIsDetected(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice, "2025-03-26")
	conn := r.dial()
	fmt.Fprint(conn, r.raw("POST", w, `[`+progressBody(1, "t", 1)+`,`+callBody(2, "demo__wait", "{}")+`]`))
	<-r.fakeNamespace.started
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	s := r.endpoint.live.All()[0]
	testkit.Eventually(t, "the server notices it", func() bool {
		return slices.ContainsFunc(s.Calls(), func(k *call) bool { return k.out.Ended() })
	})
	close(r.fakeNamespace.release)
	if err := <-r.fakeNamespace.ended; err != nil {
		t.Errorf("the tool was cancelled: %v", err)
	}
}

func TestAnOldHTTPClientGetsTheWholeStreamAtItsEnd(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	conn := r.dial()
	defer conn.Close()
	fmt.Fprint(conn, strings.Replace(r.raw("POST", w, progressBody(1, "t", 3)), "HTTP/1.1", "HTTP/1.0", 1))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(resp.TransferEncoding) != 0 || len(events(string(body))) != 4 {
		t.Errorf("%v %v %s", err, resp.Header, body)
	}
}
