package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoUserTakesAllPlaces(t *testing.T) {
	p := NewPlaces(4, 0)
	for _, c := range []struct {
		user string
		want error
	}{{"mallory", nil}, {"mallory", ErrShare}, {"victim", nil}, {"", nil}, {"", nil}, {"third", ErrFull}} {
		if err := p.Take(c.user); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.user, err, c.want)
		}
	}
	p.Release("mallory")
	if err := p.Take("mallory"); err != nil {
		t.Errorf("after a release: %v", err)
	}
	if err := NewPlaces(3, 0).Take("alone"); err != nil {
		t.Errorf("a share of less than one place: %v", err)
	}
}

func TestAPlaceGoesToTheFirstEligibleWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2, 0)
		_, _ = p.Take("mallory"), p.Take("victim")
		got := make(chan string, 3)
		for _, user := range []string{"mallory", "third"} {
			go func() {
				if p.Await(t.Context(), user) == nil {
					got <- user
				}
			}()
			synctest.Wait()
		}
		p.Release("victim")
		if user := <-got; user != "third" {
			t.Errorf("%s got the place of another user", user)
		}
		p.Release("mallory")
		if user := <-got; user != "mallory" {
			t.Errorf("%s got a place, although another user has waited longer", user)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Await(ctx, "fourth"); !errors.Is(err, ErrFull) {
			t.Errorf("if no place is free: %v", err)
		}
		p.Release("third")
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Await(ctx, "mallory"); !errors.Is(err, ErrShare) || p.Used() != 1 {
			t.Errorf("beyond the share: %v, %d used", err, p.Used())
		}
	})
}
