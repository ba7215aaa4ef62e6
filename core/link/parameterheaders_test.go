package link

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// marks returns the arguments of the tool "sell" that clients repeat in headers.
func marks() []core.Mirror {
	return []core.Mirror{{Header: "Region", Path: []string{"region"}}, {Header: "N", Path: []string{"in", "n"}}, {Header: "B", Path: []string{"in", "b"}}}
}

// regionalServer returns a server that compares a call's headers with its body, as the SDK does.
func regionalServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "3.0"}, nil)
	server.AddTool(&mcp.Tool{Name: "sell", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
		"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sold"}}}, nil
		})
	return server
}

func TestMarkedArgumentsAreRepeatedInHeaders(t *testing.T) {
	var mu sync.Mutex
	var seen http.Header
	handler := handlers(regionalServer())["stateless"]
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = r.Header.Clone()
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{Stateless: true})
	for _, c := range []struct{ name, arguments, region, n, b string }{
		{"values that need no encoding", `{"region":"us-west1","in":{"n":42,"b":false}}`, "us-west1", "42", "false"},
		{"numbers in another notation", `{"in":{"n":-7.0}}`, "", "-7", ""},
		{"a large number", `{"in":{"n":1e15}}`, "", "1000000000000000", ""},
		{"not ASCII", `{"region":"Hello, 世界"}`, "=?base64?SGVsbG8sIOS4lueVjA==?=", "", ""},
		{"surrounding spaces", `{"region":" padded "}`, "=?base64?IHBhZGRlZCA=?=", "", ""},
		{"a line break", `{"region":"line1\nline2"}`, "=?base64?bGluZTEKbGluZTI=?=", "", ""},
		{"a value that looks encoded", `{"region":"=?base64?literal?="}`, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "", ""},
		{"an empty string", `{"region":""}`, "=?base64??=", "", ""},
		{"a JSON escape", `{"region":"\u00e9"}`, "=?base64?w6k=?=", "", ""},
		{"null", `{"region":null,"in":null}`, "", "", ""},
		{"nothing", `{}`, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"sell","arguments":` + c.arguments + `}`), Mirrors: marks()})
			if err != nil {
				t.Errorf("%s (%v)", result, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for header, want := range map[string]string{"Mcp-Param-Region": c.region, "Mcp-Param-N": c.n, "Mcp-Param-B": c.b} {
				if got := seen.Get(header); got != want {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
		})
	}
	_, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"sell","arguments":{"region":"eu"}}`)})
	if failure, ok := errors.AsType[*rpc.Error](err); !ok || failure.Code != mcp.CodeHeaderMismatch {
		t.Errorf("without the headers: %v", err)
	}
}

func TestArgumentsThatDoNotFitInAHeaderAreNotRepeated(t *testing.T) {
	for _, value := range []string{`3.5`, `9007199254740993`, `{}`, `[]`} {
		header := headerparam.Header(marks()[:1], json.RawMessage(`{"name":"sell","arguments":{"region":`+value+`}}`))
		if got := header.Get("Mcp-Param-Region"); got != "" {
			t.Errorf("%s is repeated as %q", value, got)
		}
	}
}

func TestANameThatAHeaderCannotCarryIsEncoded(t *testing.T) {
	names := make(chan string, 8)
	handler := handlers(regionalServer())["stateless"]
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "resources/read" {
			names <- r.Header.Get("Mcp-Name")
		}
		handler.ServeHTTP(w, r)
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{Stateless: true})
	for uri, want := range map[string]string{"file:///a b": "file:///a b", "file:///é": "=?base64?ZmlsZTovLy/DqQ==?="} {
		_, _ = l.Call(t.Context(), Request{Method: "resources/read", Params: json.RawMessage(`{"uri":"` + uri + `"}`)}) // the resource does not exist
		if got := wait(t, names); got != want {
			t.Errorf("%s is named %q", uri, got)
		}
	}
}

func TestHeadersSetByTheTransportCannotBeConfigured(t *testing.T) {
	for _, name := range []string{"Mcp-Method", "mcp-name", "Mcp-Param-Region", "Mcp-Session-Id"} {
		if _, err := remote.New(core.Remote{URL: "https://example.com", Type: "streamable-http", Headers: map[string]core.Secret{name: "x"}}, remote.Options{}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
