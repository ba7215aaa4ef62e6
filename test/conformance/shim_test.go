package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// The everything-server is installed under the name app. Its tools and prompts therefore have the prefix.
const (
	app       = "everything"
	prefix    = app + "__"
	workspace = "ws_default"
)

// shim starts a proxy in front of base and returns the proxy's address. The proxy adds the workspace and the prefix to
// requests.
func shim(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host // the suite also sends Host headers that the server must reject
			r.Out.Header.Set("X-Workspace-Id", workspace)
			prefixRequest(r.Out)
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			r.Body = bare{bufio.NewReader(r.Body), r.Body, new(bytes.Buffer)}
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL + "/mcp"
}

// prefixRequest adds the prefix to the name of a tool or prompt in a request. The name occurs in the body and in the
// header Mcp-Name.
func prefixRequest(r *http.Request) {
	if r.Body == nil {
		return
	}
	body, _ := io.ReadAll(r.Body) // an incomplete body is passed on as it is
	var message map[string]any
	if json.Unmarshal(body, &message) == nil {
		params, _ := message["params"].(map[string]any)
		where := params
		if ref, ok := params["ref"].(map[string]any); ok && ref["type"] == "ref/prompt" {
			where = ref
		}
		switch message["method"] {
		case "tools/call", "prompts/get", "completion/complete":
			if name, ok := where["name"].(string); ok {
				where["name"] = prefix + name
				body, _ = json.Marshal(message) // cannot fail, because message was decoded from JSON
			}
			if name := r.Header.Values("Mcp-Name"); len(name) == 1 && strings.TrimSpace(name[0]) != "" {
				r.Header.Set("Mcp-Name", strings.Replace(name[0], strings.TrimSpace(name[0]), prefix+strings.TrimSpace(name[0]), 1))
			}
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// bare is a response body without the prefix in names. A message is always one line.
type bare struct {
	lines *bufio.Reader
	io.Closer
	rest *bytes.Buffer
}

func (b bare) Read(p []byte) (int, error) {
	if b.rest.Len() == 0 {
		line, err := b.lines.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		b.rest.Write(bytes.ReplaceAll(line, []byte(`"name":"`+prefix), []byte(`"name":"`)))
	}
	return b.rest.Read(p)
}
