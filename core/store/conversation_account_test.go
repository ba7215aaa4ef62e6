package store

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAConversationRemembersAnAccountUntilItIsUnlinked(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s := all[0]
		a, ref := linkOne(t, s), newConversation(t, s, "a talk")
		chosen := func(ref core.ConversationRef) string {
			t.Helper()
			got, err := s.ChosenAccount(t.Context(), ref, "far")
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := chosen(ref); got != "" {
			t.Errorf("before a choice: %q", got)
		}
		for range 2 { // the second choice replaces the first
			if err := s.ChooseAccount(t.Context(), ref, "far", a.ID); err != nil {
				t.Fatal(err)
			}
		}
		other := ref
		other.Owner = "usr_other"
		if mine, theirs := chosen(ref), chosen(other); mine != a.ID || theirs != "" {
			t.Errorf("chosen: %q, for another person %q", mine, theirs)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{"the conversation of another person": s.ChooseAccount(t.Context(), other, "far", a.ID)})
		if _, err := s.UnlinkAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		if got := chosen(ref); got != "" {
			t.Errorf("after it was unlinked: %q", got)
		}
	})
}
