package remote

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/link/framing"
)

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n: comment\n\nid: 4\nretry: 10\ndata: a\ndata: b\n\n"))
	f.Add([]byte("\uFEFFdata\n\ndata:x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 64
		discarded := framing.DiscardLog{Logger: hclog.NewNullLogger()}
		out, err := io.ReadAll(&eventFilter{in: framing.NewEventReader(bytes.NewReader(data), limit), source: io.NopCloser(nil), discarded: &discarded, limit: limit, id: func() string { return "null" }})
		if err != nil {
			t.Fatal(err)
		}
		in := framing.NewEventReader(bytes.NewReader(out), limit)
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
			if _, err := framing.Scan(e.Data); err != nil {
				t.Fatalf("%q let %q through: %v", data, e.Data, err)
			}
		}
	})
}
