package table

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestTheSpansOfARequestAreCounted(t *testing.T) {
	message := func(number protowire.Number, parts ...string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), strings.Join(parts, "")))
	}
	other := string(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 7))
	span := message(2, other)
	scope := message(2, message(1, "the scope"), span, span)
	body := message(1, message(1, "the resource"), scope, scope) + other + message(1, message(2, span))
	var received atomic.Int64
	serve := countSpans(&received)
	for text, want := range map[string]int64{body: 5, "": 0, "no protobuf": 0} {
		received.Store(0)
		serve.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/v1/traces", strings.NewReader(text)))
		if got := received.Load(); got != want {
			t.Errorf("%d spans, want %d", got, want)
		}
	}
}
