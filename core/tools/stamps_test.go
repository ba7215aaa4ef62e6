package tools

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestEachMillisecondIsWrittenOnceAndAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still unless somebody waits
		var s stamps
		first := s.now()
		<-time.After(999 * time.Microsecond)
		if again := s.now(); again != first || first != "2000-01-01T00:00:00.000Z" {
			t.Errorf("%s, then %s", first, again)
		}
		<-time.After(time.Microsecond)
		if next := s.now(); next != "2000-01-01T00:00:00.001Z" {
			t.Errorf("a millisecond later it is %s", next)
		}
	})
}
