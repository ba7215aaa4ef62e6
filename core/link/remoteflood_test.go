package link

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// A server that sends notifications without pausing is read at a limited rate, even if it keeps ending the
// stream.
func TestAServersUnpromptedMessagesAreReadAtALimitedRate(t *testing.T) {
	const limit = 64 << 10
	var sent atomic.Int64
	plain := script(nil)
	piece := []byte(strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n", 100))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 4000 {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil || r.Context().Err() != nil {
				return
			}
		}
	}))
	mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{MaxAnswer: limit}, Options{})
	<-time.After(2 * time.Second) // measures how much the server can send in this time
	// 2 MiB in 2 s, plus the kernel's buffers on both sides of the connection.
	if n := sent.Load(); n == 0 || n > 16<<20 {
		t.Errorf("%d KiB were read in two seconds", n>>10)
	}
}

// The link does not decompress responses. Otherwise, a small compressed response could become a huge one.
func TestResponsesAreNotDecompressed(t *testing.T) {
	var accepts atomic.Value
	accepts.Store("")
	url := serve(t, script(func(w http.ResponseWriter, r *http.Request, m message) {
		accepts.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		_ = z.Close()
	}))
	l := mustOpen(t, core.Remote{URL: url, Type: "streamable-http"}, remote.Options{}, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := l.Call(ctx, Request{Method: "tools/call"}); err == nil || ctx.Err() != nil {
		t.Errorf("a compressed response: %v", err)
	}
	if encoding := accepts.Load(); encoding != "" {
		t.Errorf("Accept-Encoding is %q", encoding)
	}
}
