package apps

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestASlowStartGivesItsPlaceAwayOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStartQueue(2, 2*time.Second)
		before := time.Now()
		var releases []func()
		for _, want := range []time.Duration{0, 0, 2 * time.Second, 2 * time.Second, 4 * time.Second} {
			release, err := s.acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
			expect(t, "time of a place", time.Since(before), want)
		}
		for _, release := range releases {
			release() // also of those that have no place any more
		}
		expect(t, "places taken at the end", len(s.places), 0)
	})
}
