package mcphttp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

func TestAResponseIsSignalledOnceItsCallIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slowCalls
		for range 2 { // the timer is set again after it had nothing to do
			began := time.Now()
			first, second, answered := sse.NewResponse(1, false), sse.NewResponse(1, false), sse.NewResponse(1, false)
			s.add(first)
			s.add(answered)
			<-time.After(startLimit / 2)
			s.add(second)
			s.remove(answered)
			for _, out := range []*sse.Response{first, second} {
				<-out.Wake
				if took := time.Since(began); took < startLimit || took > 5*startLimit/2 {
					t.Errorf("signalled after %v", took)
				}
				s.remove(out)
			}
			<-time.After(3 * startLimit)
			select {
			case <-answered.Wake:
				t.Error("a response that was removed is signalled")
			default:
			}
			if s.running {
				t.Error("the timer runs while nothing waits")
			}
		}
	})
}

// BenchmarkSlowCalls compares one timer for all calls with one for each.
func BenchmarkSlowCalls(b *testing.B) {
	out := sse.NewResponse(1, false)
	b.Run("shared", func(b *testing.B) {
		var s slowCalls
		b.ReportAllocs()
		for b.Loop() {
			s.add(out)
			s.remove(out)
		}
	})
	b.Run("each", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(startLimit, out.Signal).Stop()
		}
	})
}
