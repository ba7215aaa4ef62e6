package load

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClientsOfAPlanTakeTurnsAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		for client, want := range map[int][]time.Duration{0: {0, 10 * time.Millisecond, 20 * time.Millisecond}, 1: {5 * time.Millisecond, 15 * time.Millisecond}} {
			s := newSchedule(begin, client, Plan{Concurrency: 2, Rate: 200})
			s.next = s.next.Add(time.Since(begin)) // the previous client took some time
			from := time.Now()
			for _, after := range want {
				if start, ok := s.wait(nil); !ok || start.Sub(from) != after {
					t.Errorf("client %d: %v, want %v", client, start.Sub(from), after)
				}
			}
		}
	})
}

func TestALateRequestIsTimedFromItsDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := newSchedule(begin, 0, Plan{Concurrency: 1, Rate: 100})
		_, _ = s.wait(nil)
		time.Sleep(35 * time.Millisecond) // one slow response
		for _, due := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond} {
			if start, _ := s.wait(nil); start.Sub(begin) != due {
				t.Errorf("timed from %v, want %v", start.Sub(begin), due)
			}
		}
	})
}

func TestAScheduleEndsWhenItsPlanDoes(t *testing.T) {
	done := make(chan struct{})
	close(done)
	s := newSchedule(time.Now().Add(time.Hour), 0, Plan{Concurrency: 1, Rate: 1})
	if _, ok := s.wait(done); ok {
		t.Error("no request should be due after the end of the plan")
	}
}
