package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// Nothing tells which of the versions from before the limit is in use.
func TestVersionsFromBeforeTheLimitKeepTheirPins(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		put(t, s, core.Installation{ID: "i", Workspace: core.DefaultWorkspaceID, Name: "far"})
		for version := range 2 * pinVersions {
			k := core.PinKey{Workspace: core.DefaultWorkspaceID, App: "far", Bundle: "b", Version: fmt.Sprint(version)}
			if err := s.AddPins(t.Context(), k, map[string]string{"read": "r"}); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Exec(t.Context(), "", `UPDATE pin_versions SET added_at = 0`); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := s.db.Get(t.Context(), "", `SELECT COUNT(*) FROM pins`, nil, &n); err != nil || n != 2*pinVersions {
			t.Errorf("%d pins are left of %d: %v", n, 2*pinVersions, err)
		}
	})
}

// A hostile app that stated another version at each connection filled the disk.
func TestOnlyTheNewestVersionsOfAnAppKeepTheirPins(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		key := func(app string, version int) core.PinKey {
			return core.PinKey{Workspace: core.DefaultWorkspaceID, App: app, Bundle: "https://" + app, Version: fmt.Sprint("1.", version)}
		}
		add := func(k core.PinKey, size int) {
			t.Helper()
			if err := s.AddPins(t.Context(), k, map[string]string{"read": strings.Repeat("x", size)}); err != nil {
				t.Fatal(err)
			}
		}
		kept := func(app string) (n int) {
			t.Helper()
			if err := s.db.Get(t.Context(), "", `SELECT COUNT(*) FROM pins WHERE app = $1`, []any{app}, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, app := range []string{"far", "other", "large"} {
			put(t, s, core.Installation{ID: "i", Workspace: core.DefaultWorkspaceID, Name: app})
		}
		add(key("other", 1), 9)
		const accounts = 3
		for version := range pinVersions + 5 {
			add(key("far", version), 9)
			for account := range accounts { // accounts do not count as versions
				k := key("far", version)
				k.Account = fmt.Sprint("acc_", account)
				if _, err := s.OfferPin(t.Context(), k, core.Pin{Tool: "write", Offered: "w"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if far, other := kept("far"), kept("other"); far != pinVersions*(1+accounts) || other != 1 {
			t.Errorf("%d pins of the app, %d of the other", far, other)
		}
		if pins, err := s.Pins(t.Context(), key("far", pinVersions+4)); err != nil || len(pins) != 1 {
			t.Errorf("the newest version: %+v %v", pins, err)
		}
		for version := range 4 {
			add(key("large", version), pinVersionBytes/3+1)
		}
		if large := kept("large"); large != 2 {
			t.Errorf("%d versions of the app with large definitions", large)
		}
		for app := range 2 * pinVersions { // apps that are no longer installed
			add(key(fmt.Sprint("gone", app), 1), 9)
		}
		if last, first, far := kept(fmt.Sprint("gone", 2*pinVersions-1)), kept("gone0"), kept("far"); last != 1 || first != 0 || far != pinVersions*(1+accounts) {
			t.Errorf("%d pins of the last uninstalled app, %d of the first, %d of an installed one", last, first, far)
		}
	})
}

func TestPinsFromBeforeTheLimitCountAsVersions(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		k := core.PinKey{Workspace: core.DefaultWorkspaceID, App: "far", Bundle: "b", Version: "1"}
		own := k
		own.Account = "acc_" + strings.Repeat("A", 26)
		for _, k := range []core.PinKey{k, own} {
			if err := s.AddPins(t.Context(), k, map[string]string{"read": "1234"}); err != nil {
				t.Fatal(err)
			}
		}
		step, err := os.ReadFile(filepath.Join("migrations", "00085_pin_versions.sql"))
		if err != nil {
			t.Fatal(err)
		}
		fill := string(step[bytes.Index(step, []byte("INSERT INTO")):bytes.Index(step, []byte("-- +goose Down"))])
		for _, statement := range []string{`DELETE FROM pin_versions`, fill} {
			if err := s.db.Exec(t.Context(), "", statement); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := s.db.Get(t.Context(), "", `SELECT COUNT(*) FROM pin_versions WHERE version = '1' AND bytes = 8 AND added_at = 0`, nil, &n); err != nil || n != 1 {
			t.Errorf("%d versions: %v", n, err)
		}
	})
}

func TestTheOwnPinsOfAnAccountEndWithIt(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s := all[0]
		a := linkOne(t, s)
		k := core.PinKey{Workspace: a.Workspace, App: a.App, Bundle: "https://far", Version: "1"}
		own := k
		own.Account = a.ID
		for _, k := range []core.PinKey{k, own} {
			if err := s.AddPins(t.Context(), k, map[string]string{"read": "r"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.UnlinkAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		ofAll, err := s.Pins(t.Context(), k)
		ofOne, err2 := s.Pins(t.Context(), own)
		if err != nil || err2 != nil || len(ofAll) != 1 || len(ofOne) != 0 {
			t.Errorf("%+v, of the account %+v: %v %v", ofAll, ofOne, err, err2)
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
