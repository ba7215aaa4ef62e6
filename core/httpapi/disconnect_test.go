package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// patientTools blocks each call until its context ends.
type patientTools struct {
	*fakeTools
	begun, left chan struct{}
}

func (p patientTools) Call(ctx context.Context, _ core.Caller, _ tools.Call) (json.RawMessage, bool, error) {
	close(p.begun)
	<-ctx.Done()
	close(p.left)
	return nil, false, ctx.Err()
}

func TestAToolCallEndsWhenItsClientDisconnects(t *testing.T) {
	patient := patientTools{begun: make(chan struct{}), left: make(chan struct{})}
	h := open(t, newAccess(), func(o *Options) { o.Tools = patient })
	conn, _ := dial(t, h.addr)
	const body = `{"tool":"a__b"}`
	_, _ = fmt.Fprintf(conn, "POST /v1/tools/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		h.access.key, len(body), body)
	<-patient.begun
	_ = conn.Close()
	select {
	case <-patient.left:
	case <-time.After(time.Minute):
		t.Fatal("the tool is still running")
	}
	if r := h.do(t, call{method: "GET", path: "/v1/health"}); r.StatusCode != 200 {
		t.Errorf("the next request: %d", r.StatusCode)
	}
}

func TestAConnectionIsReusedAfterAWatchedCall(t *testing.T) {
	h := open(t, newAccess(), nil)
	conn, r := dial(t, h.addr)
	const body = `{"tool":"a__b"}`
	for range 3 {
		status, got := exchange(t, conn, r, fmt.Sprintf("POST /v1/tools/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			h.access.key, len(body), body))
		if status != 200 {
			t.Fatalf("%d %s", status, got)
		}
	}
}
