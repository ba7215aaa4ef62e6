package mcphttp

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// awaited returns a call whose response still lacks one answer.
func awaited(s *session) (k *call, conn net.Conn) {
	k = &call{session: s}
	k.context, k.cancel = context.WithCancel(context.Background())
	k.out = sse.NewResponse(1, false)
	conn, _ = net.Pipe()
	return k, conn
}

func TestASilentCallBecomesAStream(t *testing.T) {
	for name, s := range map[string]*session{"of a session": {}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, conn := awaited(s)
				begin := time.Now()
				if !k.await(conn) || time.Since(begin) != sse.StreamAfter {
					t.Errorf("not a stream after %v", time.Since(begin))
				}
			})
		})
	}
}

func TestACallBecomesAStreamAtItsFirstNotification(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		k, conn := awaited(&session{})
		go func() {
			if speaks {
				k.out.Notify([]byte(`{}`))
			} else {
				k.out.Answer([]byte(`{}`))
			}
		}()
		if k.await(conn) != speaks {
			t.Errorf("speaks %v: not known", speaks)
		}
	}
}
