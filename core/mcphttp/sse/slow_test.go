package sse

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAResponseIsSignalledOnceItsCallIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s SlowCalls
		for range 2 { // the timer is set again after it had nothing to do
			began := time.Now()
			first, second, answered := NewResponse(1, false), NewResponse(1, false), NewResponse(1, false)
			s.Add(first)
			s.Add(answered)
			<-time.After(startLimit / 2)
			s.Add(second)
			s.Remove(answered)
			for _, out := range []*Response{first, second} {
				<-out.Wake
				if took := time.Since(began); took < startLimit || took > 5*startLimit/2 {
					t.Errorf("signalled after %v", took)
				}
				s.Remove(out)
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
	out := NewResponse(1, false)
	b.Run("shared", func(b *testing.B) {
		var s SlowCalls
		b.ReportAllocs()
		for b.Loop() {
			s.Add(out)
			s.Remove(out)
		}
	})
	b.Run("each", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(startLimit, out.Signal).Stop()
		}
	})
}
