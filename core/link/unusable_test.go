package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

func TestTheErrorForAnUnusableRemoteNamesTheField(t *testing.T) {
	for name, c := range map[string]struct {
		remote core.Remote
		want   string
	}{
		"no URL":                           {core.Remote{URL: "::", Type: "sse"}, "url"},
		"another scheme":                   {core.Remote{URL: "ftp://x/", Type: "sse"}, "url must begin with"},
		"a password in the URL":            {core.Remote{URL: "http://a:b@x/", Type: "sse"}, "use transport.auth"},
		"an unknown transport":             {core.Remote{URL: "http://x/", Type: "websocket"}, "transport.type"},
		"an unknown auth":                  {core.Remote{URL: "http://x/", Type: "sse", Auth: core.RemoteAuth{Type: "basic"}}, "transport.auth.type"},
		"a bearer without a token":         {core.Remote{URL: "http://x/", Type: "sse", Auth: core.RemoteAuth{Type: "bearer"}}, "transport.auth.token"},
		"an invalid header name":           {core.Remote{URL: "http://x/", Type: "sse", Auth: core.RemoteAuth{Type: "header", Name: "a b", Value: "v"}}, "not a header name"},
		"a line break in a value":          {core.Remote{URL: "http://x/", Type: "sse", Headers: map[string]core.Secret{"A": "s3cret\r\nB: c"}}, "control character"},
		"a header that frames the message": {core.Remote{URL: "http://x/", Type: "sse", Headers: map[string]core.Secret{"transfer-encoding": "x"}}, "is set by the transport"},
		"a header that MCP defines":        {core.Remote{URL: "http://x/", Type: "sse", Headers: map[string]core.Secret{"mcp-session-id": "x"}}, "is set by the transport"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := remote.New(c.remote, remote.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTheErrorSuggestsCheckingTheURLIfThereIsNoMCPEndpoint(t *testing.T) {
	for _, status := range []int{200, 404, 405} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>")
		}))
		_, err := openRemote(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
		if err == nil || !strings.Contains(err.Error(), "that the URL is that of an MCP endpoint") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestTheErrorForAnUnusableRemoteServerIsOneSentenceWithAdvice(t *testing.T) {
	const remedy = ": check the transport, and that the URL is that of an MCP endpoint, whose path is often /mcp"
	answering := func(status int, media, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
	}
	for name, c := range map[string]struct{ url, want string }{
		"nothing listens":                 {"http://127.0.0.1:1", "cannot be reached: connection refused; check the address, and that the remote server is running"},
		"a host name that does not exist": {"http://nothing.invalid", "cannot be reached: its host name "},
		"a server without TLS":            {strings.Replace(answering(200, "text/html", ""), "http:", "https:", 1), "cannot be reached: it does not speak TLS; write http:// in the URL, or check the port"},
		"404":                             {answering(404, "text/plain", "no"), "responded with 404 Not Found" + remedy},
		"500":                             {answering(500, "text/plain", "no"), "responded with 500 Internal Server Error: try again later, or ask whoever runs it"},
		"429":                             {answering(429, "text/plain", "no"), "responded with 429 Too Many Requests: try again later, or ask whoever runs it"},
		"an error":                        {answering(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the tenant's header\nis missing"}}`), `responded with 400 Bad Request: "the tenant's header\nis missing"`},
		"an HTML page":                    {answering(200, "text/html", "<html>"), `responded with "text/html", which is not MCP` + remedy},
		"other JSON":                      {answering(200, "application/json", `{"a":1}`), "responded with data that is not an MCP message" + remedy},
	} {
		for _, kind := range []string{"streamable-http", "sse"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				_, err := openRemote(t, core.Remote{URL: c.url, Type: kind}, remote.Options{}, Options{})
				if err == nil {
					t.Fatal("it was opened")
				}
				host := strings.TrimPrefix(strings.TrimPrefix(c.url, "http://"), "https://")
				want := "remote server " + host + " " + c.want
				if kind == "sse" && name == "other JSON" {
					want = "remote server " + host + " responded with data that is not an MCP message"
				}
				if got := err.Error(); !strings.HasPrefix(got, want) || strings.Count(got, host) != 1 || strings.Count(got, ":") > 4 {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

func TestTheResponseThatEndsASessionIsNotReportedAsTheCause(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, `{"a":1}`)
	}))
	_, err := openRemote(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	if err == nil || !strings.Contains(err.Error(), "responded with data that is not an MCP message") {
		t.Errorf("got %v", err)
	}
}

func TestTheErrorFromARefusedHandshakeIsReportedUnchanged(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no license"}}`, m.ID)
	}))
	_, err := openRemote(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	if !errors.Is(err, ErrRefused) || err.Error() != "handshake: the app refused the handshake: no license" {
		t.Errorf("got %v", err)
	}
}
