package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAConversationHasOneRunAtATime(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref, other := newConversation(t, s, ""), newConversation(t, s, "")
		claim := func(ref core.ConversationRef, holder string, lease time.Duration) error {
			return s.ClaimRun(t.Context(), ref, holder, lease)
		}
		stranger := ref
		stranger.Owner = "usr_x"
		err := errors.Join(claim(ref, "a", time.Hour), claim(ref, "a", time.Hour), claim(other, "b", time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeRunInProgress, map[string]error{"a second": claim(ref, "b", time.Hour)})
		wantCodes(t, core.CodeNotFound, map[string]error{"another's": claim(stranger, "b", time.Hour)})
		if err := s.ReleaseRun(t.Context(), ref, "b"); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeRunInProgress, map[string]error{"after another released a slot that it did not hold": claim(ref, "b", time.Hour)})
		err = errors.Join(s.ReleaseRun(t.Context(), ref, "a"), claim(ref, "b", -time.Second), // an expired lease
			claim(ref, "c", time.Hour), s.DeleteConversation(t.Context(), ref), s.ReleaseRun(t.Context(), core.ConversationRef{ID: "none"}, "c"))
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestOneOfManyServersGetsTheRun(t *testing.T) {
	url := newDatabase(t)
	servers := []*Store{openURL(t, url), openURL(t, url), openURL(t, url)}
	ref := newConversation(t, servers[0], "")
	var got atomic.Int32
	var wg sync.WaitGroup
	for i := range 15 {
		wg.Go(func() {
			switch err := servers[i%3].ClaimRun(t.Context(), ref, string(rune('a'+i)), time.Hour); {
			case err == nil:
				got.Add(1)
			case core.CodeOf(err) != core.CodeRunInProgress:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d got it", got.Load())
	}
}
