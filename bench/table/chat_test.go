package table

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheDelayOfEachChunkOfAnAnswerIsMeasured(t *testing.T) {
	for data, want := range map[string]int64{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"17 "}}`: 17,
		`{"runId":"run_1","text":"18 "}`:                              18,
		`{"conversationId":"conv_1","runId":"run_1"}`:                 0,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`: 0,
	} {
		if got, err := written([]byte(data)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", data, got, err, want)
		}
	}
	for _, data := range []string{`{"error":"provider_error","message":"m"}`, `{"text":"no number"}`, `{`} {
		if got, err := written([]byte(data)); err == nil {
			t.Errorf("%s: %d and no error", data, got)
		}
	}
}

func TestAnIncompleteResponseIsNotMeasured(t *testing.T) {
	pieces := 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/chat" {
			w.WriteHeader(http.StatusTeapot)
		}
		for range pieces {
			_, _ = fmt.Fprintf(w, "event: text.delta\ndata: {\"text\":\"%d \"}\n\n", time.Now().Add(-time.Second).UnixNano())
		}
	}))
	t.Cleanup(server.Close)
	l := listener{"it", server.URL + "/chat", "{}"}
	if got, err := l.listen(t.Context(), 2, 3); err != nil || got.p50 < 1e6 || got.p50 > 1e7 || got.p99 < got.p50 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := l.listen(t.Context(), 2, 4); err == nil || !strings.Contains(err.Error(), "3 pieces of 4") {
		t.Errorf("%v", err)
	}
	if _, err := (listener{"it", server.URL + "/other", "{}"}).listen(t.Context(), 1, 3); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("%v", err)
	}
}

func TestOnlyExistingPartsAreMeasured(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"chat", "chit"}}); err == nil || !strings.Contains(err.Error(), `no part "chit"`) {
		t.Errorf("%v", err)
	}
	if all := Parts(); !slices.Contains(all, "calls") || !slices.Contains(all, "chat") {
		t.Errorf("%v", all)
	}
}
