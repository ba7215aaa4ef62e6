package intake

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLargeBodiesOfOneClientComeOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLane(), time.Now()
		var answered []func()
		for range workingBodies() {
			answered = append(answered, l.begin("a", 1<<20))
		}
		l.begin("b", 1<<20)()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a client with few large bodies waited %v", waited)
		}
		l.begin("a", 2<<20)()
		if waited := time.Since(began); waited != 2*workPause {
			t.Errorf("a body of 2 MiB waited %v for others that take long, want %v", waited, 2*workPause)
		}
		began = time.Now()
		time.AfterFunc(time.Millisecond, answered[0])
		answered[0] = l.begin("a", 1<<20)
		if waited := time.Since(began); waited != time.Millisecond {
			t.Errorf("a body waited %v for one that was answered after 1ms", waited)
		}
		for _, end := range answered {
			end()
		}
		if len(l.clients) != 0 {
			t.Errorf("%d clients are remembered", len(l.clients))
		}
	})
}

func TestBodiesAreWorkedOnTogetherWhileTheirBytesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLane(), time.Now()
		const size = 64 << 10
		var answered []func()
		for range workingBodies() * maxWeight / size {
			answered = append(answered, l.begin("a", size))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("bodies that are small together waited %v", waited)
		}
		l.begin("a", size)()
		if waited := time.Since(began); waited != workPause/16 {
			t.Errorf("one body too many waited %v, want %v", waited, workPause/16)
		}
		for _, end := range answered {
			end()
		}
	})
}
