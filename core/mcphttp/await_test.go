package mcphttp

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// awaited returns a call whose response still lacks one answer.
func awaited(s *session) (e *Endpoint, k *call, conn net.Conn) {
	e = &Endpoint{timers: sync.Pool{New: newTimer}}
	k = &call{session: s}
	k.context, k.cancel = context.WithCancel(context.Background())
	k.out = sse.NewResponse(1, false)
	conn, _ = net.Pipe()
	return e, k, conn
}

func TestASilentCallBecomesAStream(t *testing.T) {
	for name, s := range map[string]*session{"with a session": {}, "without a session": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, k, conn := awaited(s)
				begin := time.Now()
				if !e.await(k, conn) || time.Since(begin) != sse.StreamAfter {
					t.Errorf("not a stream after %v", time.Since(begin))
				}
			})
		})
	}
}

func TestACallBecomesAStreamAtItsFirstNotification(t *testing.T) {
	for _, notifies := range []bool{true, false} {
		e, k, conn := awaited(&session{})
		go func() {
			if notifies {
				k.out.Notify([]byte(`{}`))
			} else {
				k.out.Answer([]byte(`{}`))
			}
		}()
		if e.await(k, conn) != notifies {
			t.Errorf("notified %v: the form of the response is not known", notifies)
		}
	}
}
