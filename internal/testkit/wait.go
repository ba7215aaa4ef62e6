package testkit

import (
	"testing"
	"time"
)

// patience is how long a test waits for what happens at once on an idle machine: a busy one
// may be many times slower.
const patience = time.Minute

// Eventually waits until holds reports true, and fails the test after a minute, naming what was awaited.
// It is for what another goroutine or process brings about; inside a synctest bubble use
// synctest.Wait instead.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(patience, holds) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// Within asks every few milliseconds until holds reports true or the time is up, and returns its last
// answer. It is for tests that report the failure themselves. It asks less often the longer it takes,
// because many questions are requests that keep the processor from what is waited for.
func Within(limit time.Duration, holds func() bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	pause := 5 * time.Millisecond
	next := time.NewTimer(pause)
	defer next.Stop()
	for !holds() {
		select {
		case <-next.C:
			pause = min(pause*5/4, 25*time.Millisecond)
			next.Reset(pause)
		case <-late.C:
			return holds()
		}
	}
	return true
}

// Receive returns the next value of c and whether c is open, and fails the test after a minute without one.
func Receive[T any](t testing.TB, what string, c <-chan T) (T, bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case v, open := <-c:
		return v, open
	case <-late.C:
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}
