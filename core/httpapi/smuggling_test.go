package httpapi

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAMalformedRequestIsRefusedAndClosesItsConnection(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range smuggled() {
		for _, before := range []struct{ name, request string }{{"alone", ""}, {"after a valid one", getHead + "\r\n"}} {
			t.Run(c.name+" "+before.name, func(t *testing.T) {
				t.Parallel()
				got := h.rawToEnd(t, before.request+c.request)
				good := strings.Count(before.request, "HTTP/1.1")
				if n := strings.Count(got, "HTTP/1.1 "); n != good+1 {
					t.Errorf("%d responses, want %d:\n%s", n, good+1, got)
				}
				if !strings.Contains(got, "HTTP/1.1 400 ") || !strings.Contains(got, "malformed HTTP request") || !strings.Contains(got, "Connection: close") {
					t.Errorf("the malformed request was not refused:\n%s", got)
				}
			})
		}
	}
}

func TestUnusualButValidRequestsKeepTheConnection(t *testing.T) {
	h := open(t, newAccess(), nil)
	auth := "Authorization: Bearer " + h.access.key + "\r\n"
	body := `{"server":"a","tool":"b"}`
	post := "POST /v1/tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + auth
	for _, c := range []smuggle{
		{"chunks with extensions", post + "Transfer-Encoding: chunked\r\n\r\n6;a=b\r\n" + body[:6] + "\r\n13\r\n" + body[6:] + "\r\n0\r\n\r\n"},
		{"a length", post + "Content-Length: 25\r\n\r\n" + body},
		{"a target that contains the host as well", strings.Replace(post, "/v1/", "http://LocalHost/v1/", 1) + "Content-Length: 25\r\n\r\n" + body},
		{"chunked in capitals", post + "Transfer-Encoding: CHUNKED\r\n\r\n19\r\n" + body + "\r\n0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := h.rawToEnd(t, c.request+getHead+"Connection: close\r\n\r\n")
			if strings.Count(got, "HTTP/1.1 200 ") != 2 {
				t.Errorf("one of the two requests was not served:\n%s", got)
			}
		})
	}
}

// rawToEnd sends bytes unchanged and returns everything that it receives. The server must close the connection.
func (h *testServer) rawToEnd(t testing.TB, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("the connection was not closed: %v\n%s", err, got)
	}
	if r := h.do(t, call{method: http.MethodGet, path: "/v1/health"}); r.StatusCode != http.StatusOK {
		t.Errorf("the server no longer works: %d", r.StatusCode)
	}
	return string(got)
}

// smuggle is a request that one HTTP parser might read as one request and another as two, or that contains something
// that HTTP does not allow. It is followed by a second request, the canary, which must not get a response of its own
// unless the first request was read in the only way that HTTP allows.
type smuggle struct {
	name    string
	request string
}

const (
	canary   = "GET /v1/canary HTTP/1.1\r\nHost: localhost\r\n\r\n"
	postHead = "POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	getHead  = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"

	// otherHead differs from getHead in its request line. If two requests with the same request line arrive together
	// and the second line ends in a bare line feed, the first request is refused too.
	otherHead = "GET /v1/health?b=1 HTTP/1.1\r\nHost: localhost\r\n"
)

func smuggled() []smuggle {
	headers := func(name, lines string) smuggle {
		return smuggle{name, postHead + lines + "\r\n0\r\n\r\n" + canary}
	}
	get := func(name, lines string) smuggle { return smuggle{name, getHead + lines + "\r\n" + canary} }
	chunked := func(name, body string) smuggle {
		return smuggle{name, postHead + "Transfer-Encoding: chunked\r\n\r\n" + body + canary}
	}
	return []smuggle{
		headers("length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
		headers("chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
		headers("length zero and chunked", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
		headers("two lengths that differ", "Content-Length: 5\r\nContent-Length: 0\r\n"),
		headers("two lengths that agree", "Content-Length: 5\r\nContent-Length: 5\r\n"),
		headers("a list of lengths", "Content-Length: 5, 5\r\n"),
		headers("a list of lengths that differ", "Content-Length: 0, 5\r\n"),
		headers("a signed length", "Content-Length: +5\r\n"),
		headers("a negative length", "Content-Length: -5\r\n"),
		headers("a length in hexadecimal", "Content-Length: 0x5\r\n"),
		headers("a length with a space inside", "Content-Length: 1 5\r\n"),
		headers("a length with an underscore", "Content-Length: 1_0\r\n"),
		headers("a length above 64 bits", "Content-Length: 18446744073709551621\r\n"),
		headers("a length that is empty", "Content-Length:\r\n"),
		headers("a length with a fraction", "Content-Length: 5.0\r\n"),
		headers("a space before the colon of the length", "Content-Length : 5\r\n"),
		headers("a tab before the colon of the length", "Content-Length\t: 5\r\n"),
		headers("a space before the colon of the encoding", "Transfer-Encoding : chunked\r\n"),
		headers("an unknown encoding", "Transfer-Encoding: xchunked\r\n"),
		headers("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
		headers("chunked and identity", "Transfer-Encoding: chunked, identity\r\n"),
		headers("identity and chunked", "Transfer-Encoding: identity, chunked\r\n"),
		headers("gzip and chunked", "Transfer-Encoding: gzip, chunked\r\n"),
		headers("chunked and gzip", "Transfer-Encoding: chunked, gzip\r\n"),
		headers("identity", "Transfer-Encoding: identity\r\n"),
		headers("an encoding in quotes", "Transfer-Encoding: \"chunked\"\r\n"),
		headers("an encoding after a vertical tab", "Transfer-Encoding: \vchunked\r\n"),
		headers("an encoding that is empty", "Transfer-Encoding:\r\n"),
		headers("an encoding with a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
		headers("a second encoding that is unknown", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"),
		headers("an encoding folded over two lines", "Transfer-Encoding:\r\n chunked\r\n"),
		headers("a folded header", "X-A: b\r\n\tContent-Length: 5\r\n"),
		headers("a length folded over two lines", "Content-Length:\r\n 5\r\n"),
		headers("a header without a colon", "Content-Length 5\r\n"),
		headers("a header without a name", ": 5\r\n"),
		headers("a header name with a space", "Content Length: 5\r\n"),
		headers("a header name with a NUL", "X\x00A: 5\r\n"),
		headers("a header value with a NUL", "X-A: \x005\r\n"),
		headers("a header value with a bare carriage return", "X-A: b\rContent-Length: 5\r\n"),
		headers("a header name with a control character", "X\x01A: 5\r\n"),
		headers("a header name with a parenthesis", "X(A: 5\r\n"),
		headers("a header value with DEL", "X-A: \x7f\r\n"),
		{"bare line feeds", strings.ReplaceAll(otherHead, "\r\n", "\n") + "\n" + canary},
		{"a bare line feed after the request line", strings.Replace(otherHead, "\r\n", "\n", 1) + "\r\n" + canary},
		{"one bare line feed", getHead + "X-A: b\n\r\n" + canary},
		{"a bare line feed before the length", postHead + "X-A: b\nContent-Length: 5\r\n\r\n12345" + canary},
		{"a space before the first header", "GET /v1/health HTTP/1.1\r\n X-A: b\r\nHost: localhost\r\n\r\n" + canary},
		{"chunked on HTTP/1.0", "POST /v1/auth/login HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + canary},
		get("two hosts", "Host: evil.example\r\n"),
		{"no host", "GET /v1/health HTTP/1.1\r\n\r\n" + canary},
		{"a host with a space", "GET /v1/health HTTP/1.1\r\nHost: local host\r\n\r\n" + canary},
		{"a host with a slash", "GET /v1/health HTTP/1.1\r\nHost: localhost/x\r\n\r\n" + canary},
		{"a host with a user", "GET /v1/health HTTP/1.1\r\nHost: a@localhost\r\n\r\n" + canary},
		{"a target with another host", "GET http://evil.example/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"a target with this host and another Host header", "GET http://localhost/v1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n" + canary},
		{"a target with a user", "GET http://localhost@evil.example/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"two spaces in the request line", "GET  /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"a tab in the request line", "GET\t/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"an unknown version", "GET /v1/health HTTP/3.7\r\nHost: localhost\r\n\r\n" + canary},
		{"HTTP/0.9", "GET /v1/health\r\n\r\n" + canary},
		{"a version in lower case", "GET /v1/health http/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"a request line with a NUL", "GET /v1/he\x00alth HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		{"a method with a bracket", "G{ET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" + canary},
		chunked("a chunk size with a sign", "+5\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk size with the prefix 0x", "0x5\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk size above 64 bits", "10000000000000005\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk size after a space", " 5\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk size that is empty", "\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk size and a bare line feed", "5\n12345\r\n0\r\n\r\n"),
		chunked("a chunk without its end", "5\r\n12345XX0\r\n\r\n"),
		chunked("a chunk ended by a bare line feed", "5\r\n12345\n0\r\n\r\n"),
		chunked("a chunk extension with a bare line feed", "5;a\nb\r\n12345\r\n0\r\n\r\n"),
		chunked("a chunk that is shorter than its size", "6\r\n12345\r\n0\r\n\r\n"),
		chunked("a negative chunk size", "-5\r\n12345\r\n0\r\n\r\n"),
		chunked("an end without its empty line", "5\r\n12345\r\n0\r\nX"),
		chunked("a trailer", "5\r\n12345\r\n0\r\nX-A: b\r\n\r\n"),
		chunked("a trailer with a workspace", "5\r\n12345\r\n0\r\nX-Workspace-Id: ws_other\r\n\r\n"),
		chunked("a trailer that ends in a bare line feed", "5\r\n12345\r\n0\r\nX-A: b\n\r\n"),
		chunked("a trailer in two lines", "5\r\n12345\r\n0\r\nX-A: b\r\n c\r\n\r\n"),
		chunked("a trailer with a space before its colon", "5\r\n12345\r\n0\r\nX-A : b\r\n\r\n"),
	}
}

func TestATruncatedChunkedBodyIsNotProcessed(t *testing.T) {
	body := `{"server":"a","tool":"b"}`
	for name, c := range map[string]struct {
		chunks string
		calls  int
	}{
		"after the size":            {"19\r\n", 0},
		"inside a chunk":            {"19\r\n" + body[:20], 0},
		"after the data":            {"19\r\n" + body, 0},
		"after a whole chunk":       {"19\r\n" + body + "\r\n", 0},
		"inside the last size":      {"19\r\n" + body + "\r\n0", 0},
		"after the last size":       {"19\r\n" + body + "\r\n0\r\n", 0},
		"inside the trailer":        {"19\r\n" + body + "\r\n0\r\nX-A: b\r\n", 0},
		"before the last line feed": {"19\r\n" + body + "\r\n0\r\n\r", 0},
		"not truncated":             {"19\r\n" + body + "\r\n0\r\n\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, newAccess(), nil)
			conn, err := net.Dial("tcp", h.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = io.WriteString(conn, "POST /v1/tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
				h.access.key+"\r\nTransfer-Encoding: chunked\r\n\r\n"+c.chunks)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(conn)
			h.tools.mu.Lock()
			defer h.tools.mu.Unlock()
			if len(h.tools.calls) != c.calls {
				t.Errorf("%d calls, want %d\n%s", len(h.tools.calls), c.calls, got)
			}
		})
	}
}
