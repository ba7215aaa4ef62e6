package intake

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestABodyBeyondTheBudgetWaitsAndIsThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		release, err := b.acquire(8, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := b.acquire(3, time.Second); core.CodeOf(err) != core.CodeUnavailable || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.AfterFunc(time.Millisecond, release)
		whole, err := b.acquire(100, time.Second) // larger than the budget, so it takes the whole budget
		if err != nil {
			t.Fatalf("the body was refused although the bytes became free: %v", err)
		}
		if _, err := b.acquire(1, 0); err == nil {
			t.Error("bytes in use were allotted twice")
		}
		whole()
	})
}

func TestABudgetOfZeroIsUnlimited(t *testing.T) {
	b := newBudget(0)
	for range 3 {
		if _, err := b.acquire(1<<40, 0); err != nil {
			t.Error(err)
		}
	}
}
