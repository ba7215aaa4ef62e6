package store

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestPinsAreKeptPerVersionAndDecidedOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		k := core.PinKey{Workspace: core.DefaultWorkspaceID, App: "files", Bundle: "@a/files", Version: "1"}
		put(t, s, core.Installation{ID: "i", Workspace: k.Workspace, Name: k.App})
		other := k
		other.Version = "2"
		for _, definitions := range []map[string]string{{"read": "first", "write": "w"}, {"read": "second"}} {
			if err := s.AddPins(t.Context(), k, definitions); err != nil {
				t.Fatal(err)
			}
		}
		if pins, err := s.Pins(t.Context(), k); err != nil || len(pins) != 2 || pins["read"].Definition != "first" {
			t.Errorf("%+v %v", pins, err)
		}
		if pins, err := s.Pins(t.Context(), other); err != nil || len(pins) != 0 {
			t.Errorf("of another version: %+v %v", pins, err)
		}
		var first atomic.Int32
		var seeing sync.WaitGroup
		for range 8 {
			seeing.Go(func() {
				one, err := s.OfferPin(t.Context(), k, core.Pin{Tool: "read", Offered: "evil"})
				if err != nil {
					t.Error(err)
				}
				if one {
					first.Add(1)
				}
			})
		}
		seeing.Wait()
		if first.Load() != 1 {
			t.Errorf("%d servers saw the change first", first.Load())
		}
		keys, changed, err := s.ChangedPins(t.Context(), core.DefaultWorkspaceID)
		if err != nil || len(changed) != 1 || keys[0] != k || changed[0].Offered != "evil" || changed[0].Definition != "first" {
			t.Errorf("%+v %+v %v", keys, changed, err)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{
			"another change": s.DecidePin(t.Context(), k, "read", "worse", true), "another version": s.DecidePin(t.Context(), other, "read", "evil", true),
		})
		if err := s.DecidePin(t.Context(), k, "read", "evil", false); err != nil {
			t.Fatal(err)
		}
		if _, changed, _ := s.ChangedPins(t.Context(), core.DefaultWorkspaceID); len(changed) != 1 || !changed[0].Refused {
			t.Errorf("after a refusal: %+v", changed)
		}
		if err := s.DecidePin(t.Context(), k, "read", "evil", true); err != nil {
			t.Fatal(err)
		}
		if pins, _ := s.Pins(t.Context(), k); pins["read"].Definition != "evil" || pins["read"].Offered != "" {
			t.Errorf("after it was accepted: %+v", pins)
		}
		if again, err := s.OfferPin(t.Context(), k, core.Pin{Tool: "read", Offered: "evil"}); err != nil || again {
			t.Errorf("the accepted definition should not be a change: %v %v", again, err)
		}
		if one, err := s.OfferPin(t.Context(), k, core.Pin{Tool: "fetch", Offered: "f", RenamedFrom: "read"}); err != nil || !one {
			t.Errorf("a renamed tool: %v %v", one, err)
		}
	})
}

func TestADecisionOnAPinReachesTheOtherServers(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	k := core.PinKey{Workspace: core.DefaultWorkspaceID, App: "files", Bundle: "@a/files", Version: "1"}
	if err := a.AddPins(t.Context(), k, map[string]string{"read": "first"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OfferPin(t.Context(), k, core.Pin{Tool: "read", Offered: "evil"}); err != nil {
		t.Fatal(err)
	}
	seen := b.Changes(t.Context())
	if err := a.DecidePin(t.Context(), k, "read", "evil", true); err != nil {
		t.Fatal(err)
	}
	for c := next(t, seen); c != (core.Change{Kind: core.ChangePins, Workspace: k.Workspace, Name: k.App}); c = next(t, seen) {
		t.Logf("another change: %+v", c)
	}
}
