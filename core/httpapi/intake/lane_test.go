package intake

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestOneClientsLargeBodiesAreProcessedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLane(0), time.Now()
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
			t.Errorf("a body of 2 MiB waited %v for slow ones, want %v", waited, 2*workPause)
		}
		began = time.Now()
		time.AfterFunc(time.Millisecond, answered[0])
		answered[0] = l.begin("a", 1<<20)
		if waited := time.Since(began); waited != time.Millisecond {
			t.Errorf("a body waited %v for one that was answered after 1 ms", waited)
		}
		for _, end := range answered {
			end()
		}
		if len(l.clients) != 0 {
			t.Errorf("%d clients are still stored", len(l.clients))
		}
	})
}

func TestSmallBodiesAreProcessedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLane(0), time.Now()
		const size = 64 << 10
		var answered []func()
		for range workingBodies() * maxWeight / size {
			answered = append(answered, l.begin("a", size))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("bodies within the limit waited %v", waited)
		}
		l.begin("a", size)()
		if waited := time.Since(began); waited != workPause/16 {
			t.Errorf("the first body beyond the limit waited %v, want %v", waited, workPause/16)
		}
		for _, end := range answered {
			end()
		}
	})
}

func TestOneClientUsesAtMostAQuarterOfTheMemoryForBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReader(time.Second, 0, 40)
		take := func(client string, n int) (func(), error) { return r.take(r.known, client, n) }
		first, err := take("mallory", 8)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := take("mallory", 3); core.CodeOf(err) != core.CodeRateLimited || time.Since(begin) != time.Second {
			t.Errorf("beyond the quarter: %v after %v", err, time.Since(begin))
		}
		if _, err := take("victim", 10); err != nil {
			t.Errorf("another client: %v", err)
		}
		first()
		whole, err := take("mallory", 20) // larger than the client's quarter, so it takes the whole quarter
		if err != nil {
			t.Fatal(err)
		}
		whole()
		if len(r.known.clients) != 1 {
			t.Errorf("%d clients are still stored", len(r.known.clients))
		}
	})
}
