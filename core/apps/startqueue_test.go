package apps

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestASlowStartReleasesItsPlaceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStartQueue(2, 2*time.Second)
		before := time.Now()
		var releases []func()
		for _, want := range []time.Duration{0, 0, 2 * time.Second, 2 * time.Second, 4 * time.Second} {
			release, err := s.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
			if got := time.Since(before); got != want {
				t.Errorf("got a slot after %v, want %v", got, want)
			}
		}
		for _, release := range releases {
			release() // including those that no longer hold a place
		}
		if n := len(s.places); n != 0 {
			t.Errorf("%d slots are taken at the end", n)
		}
	})
}
