package rival

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Model runs a model provider with Anthropic's API (POST, streaming). Each piece of text is the time at which
// the piece was written, in nanoseconds since 1970, so that the reader can calculate the delay. A response has
// the given number of pieces, at a steady rate; a response of the model "once" has a single piece. Model writes
// its URL to out.
func Model(ctx context.Context, deltas int, every time.Duration, out io.Writer) error {
	return serve(ctx, "/v1/messages", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string `json:"model"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n := deltas
		if asked.Model == "once" {
			n = 1
		}
		w.Header().Set("Content-Type", "text/event-stream")
		speak(r.Context(), w, n, every)
	}), out)
}

func speak(ctx context.Context, w http.ResponseWriter, deltas int, every time.Duration) {
	say := func(name, data string) {
		_, _ = io.WriteString(w, "event: "+name+"\ndata: "+data+"\n\n") // if the reader has disconnected, ctx is cancelled
		_ = http.NewResponseController(w).Flush()
	}
	say("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"bench","usage":{"input_tokens":10,"output_tokens":1}}}`)
	say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range deltas {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			say("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+strconv.FormatInt(time.Now().UnixNano(), 10)+` "}}`)
		}
	}
	say("content_block_stop", `{"type":"content_block_stop","index":0}`)
	say("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, deltas))
	say("message_stop", `{"type":"message_stop"}`)
}
