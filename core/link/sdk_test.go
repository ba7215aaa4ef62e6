package link

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// sdkPipes connects an SDK server to the returned streams.
func sdkPipes(t testing.TB) (in *os.File, out *os.File) {
	t.Helper()
	return servedPipes(t, sdkServer())
}

// servedPipes connects s to the returned streams.
func servedPipes(t testing.TB, s *mcp.Server) (in *os.File, out *os.File) {
	t.Helper()
	toServer, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.Connect(t.Context(), &mcp.IOTransport{Reader: toServer, Writer: fromServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return in, out
}

func TestTheSDKsServerIsCalledOverStandardStreams(t *testing.T) {
	in, out := sdkPipes(t)
	l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	remoteProgress(t, l)
	if tools, err := l.List(t.Context(), core.KindTools); err != nil || len(tools) != 4 {
		t.Errorf("%d tools (%v)", len(tools), err)
	}
	// The transport also works for a client without a link.
	in, out = sdkPipes(t)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil).Connect(t.Context(), stdio.New(in, out, stdio.Options{}), &mcp.ClientSessionOptions{ProtocolVersion: ProtocolVersion})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x", "n": 1}}); err != nil {
		t.Error(err)
	}
	_ = session.Close()
}

// light is an app with minimal overhead, which answers each line with the same result.
func light(b *testing.B, result string) (in io.WriteCloser, out io.ReadCloser) {
	b.Helper()
	toServer, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, fromServer, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer fromServer.Close()
		f := rpc.NewLineReader(toServer, rpc.DefaultMaxLine)
		for {
			l, err := f.Next()
			if err != nil {
				return
			}
			e, err := rpc.Scan(l.Data)
			if err != nil || e.IDKind != rpc.IDNumber {
				continue
			}
			answer := result
			if e.Method == "initialize" {
				answer = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"light","version":"1"}}`
			}
			id, _ := json.Marshal(e.Number)
			_, _ = fromServer.WriteString(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + answer + "}\n")
		}
	}()
	return in, out
}

// BenchmarkCall compares a link's tools/call with the SDK's CallTool, over the same pipes to the same app, with results
// of 200 bytes and 64 KB.
func BenchmarkCall(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "64KB": 64 << 10} {
		text := strings.Repeat("x", size)
		result := `{"content":[{"type":"text","text":"` + text + `"}]}`
		b.Run(name+"/link", func(b *testing.B) {
			in, out := light(b, result)
			l, err := Open(b.Context(), stdio.New(in, out, stdio.Options{}), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			params := json.RawMessage(`{"name":"echo","arguments":{"text":"` + text + `"}}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Call(b.Context(), Request{Method: "tools/call", Params: params}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/sdk", func(b *testing.B) {
			in, out := light(b, result)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil).Connect(b.Context(), &mcp.IOTransport{Reader: out, Writer: in},
				&mcp.ClientSessionOptions{ProtocolVersion: ProtocolVersion})
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScanEnvelope(b *testing.B) {
	frame := []byte(`{"jsonrpc":"2.0","id":1048577,"result":{"content":[{"type":"text","text":"` + text64K() + `"}]}}`)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rpc.Scan(frame); err != nil {
			b.Fatal(err)
		}
	}
}
