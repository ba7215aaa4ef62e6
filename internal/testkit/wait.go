package testkit

import (
	"testing"
	"time"
)

// patience is how long a test waits for something that is immediate on an idle machine. A busy machine may be
// many times slower.
const patience = time.Minute

// Eventually waits until condition returns true. After a minute it fails the test with the description. It is for
// effects of other goroutines or processes; in a synctest bubble, use synctest.Wait instead.
func Eventually(t testing.TB, description string, condition func() bool) {
	t.Helper()
	if !Within(patience, condition) {
		t.Fatalf("timed out after %s: %s", patience, description)
	}
}

// Within calls condition repeatedly until it returns true or the time limit is reached, and returns its last
// result. It is for tests that report the failure themselves. It starts with an interval of a few milliseconds,
// which grows: many conditions are requests, and take processor time from the thing that the test waits for.
func Within(limit time.Duration, condition func() bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	pause := 5 * time.Millisecond
	next := time.NewTimer(pause)
	defer next.Stop()
	for !condition() {
		select {
		case <-next.C:
			pause = min(pause*5/4, 25*time.Millisecond)
			next.Reset(pause)
		case <-late.C:
			return condition()
		}
	}
	return true
}

// Receive returns the next value of c and whether c is open. It fails the test if there is none within a
// minute.
func Receive[T any](t testing.TB, description string, c <-chan T) (T, bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case v, open := <-c:
		return v, open
	case <-late.C:
		t.Fatalf("timed out after %s: %s", patience, description)
		panic("unreachable")
	}
}
