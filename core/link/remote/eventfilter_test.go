package remote

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/rpc"
)

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n: comment\n\nid: 4\nretry: 10\ndata: a\ndata: b\n\n"))
	f.Add([]byte("\uFEFFdata\n\ndata:x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 64
		discarded := rpc.DiscardLog{Logger: hclog.NewNullLogger()}
		out, err := io.ReadAll(&eventFilter{in: rpc.NewEventReader(bytes.NewReader(data), limit), source: io.NopCloser(nil), discarded: &discarded, limit: limit, id: func() string { return "null" }})
		if err != nil {
			t.Fatal(err)
		}
		in := rpc.NewEventReader(bytes.NewReader(out), limit)
		for {
			e, err := in.Next()
			if err != nil {
				return
			}
			if e.Over {
				t.Fatalf("%q let an over-long event through", data)
			}
			if !e.IsMessage() || len(e.Data) == 0 {
				continue
			}
			if _, err := rpc.Scan(e.Data); err != nil {
				t.Fatalf("%q let %q through: %v", data, e.Data, err)
			}
		}
	})
}

// An event's id and retry fields are sent back in a header and control how often the server is polled.
func TestFieldsThatCannotBeUsedToResumeAreNotPassedOn(t *testing.T) {
	for sent, want := range map[string]string{
		"id: 7\nretry: 1500\n\n":   "id: 7\nretry: 1500\n\n",
		"id\n\n":                   "id: \n\n",
		"id: a\x01b\nretry: 0\n\n": "retry: 200\n\n",
		"id: a\x00b\nretry: 1\n\n": "retry: 200\n\n",
		"id: " + strings.Repeat("i", maxEventID+1) + "\n\n": "\n",
		"retry: 99999999999999999999\n\n":                   "retry: 60000\n\n",
		"retry: -5\n\n":                                     "\n",
		"retry: 1e9\n\n":                                    "\n",
	} {
		discarded := rpc.DiscardLog{Logger: hclog.NewNullLogger()}
		got, err := io.ReadAll(&eventFilter{
			in: rpc.NewEventReader(strings.NewReader(sent), 64<<10), source: io.NopCloser(nil), discarded: &discarded, limit: 64 << 10, id: func() string { return "null" },
		})
		if err != nil || string(got) != want {
			t.Errorf("%.60q became %q (%v), want %q", sent, got, err, want)
		}
	}
}
