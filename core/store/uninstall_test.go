package store

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAnUninstalledAppIsRestoredAsItWasOrDeletedCompletely(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s, ws := all[0], core.DefaultWorkspaceID
		a := linkOne(t, s)
		before, err := s.Installation(t.Context(), ws, "far")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutKeptLists(t.Context(), ws, "far", "sum", "{}"); err != nil {
			t.Fatal(err)
		}
		standing := waitingCall("apr_1", "apr_1")
		standing.Tool, standing.Definition = "far__b", "one"
		if _, _, err := s.RequestApproval(t.Context(), standing, 9); err != nil {
			t.Fatal(err)
		}
		standing.State, standing.Always, standing.DecidedBy, standing.DecidedAt = core.ApprovalApproved, true, core.User{ID: "usr_b"}, time.Now()
		if err := s.DecideApproval(t.Context(), standing); err != nil {
			t.Fatal(err)
		}
		listed := func(want int) {
			t.Helper()
			apps, err := s.Installations(t.Context())
			approvals, err2 := s.StandingApprovals(t.Context(), ws)
			if err != nil || err2 != nil || len(apps) != want || len(approvals) != want {
				t.Errorf("%d apps and %d approvals are listed, want %d: %v %v", len(apps), len(approvals), want, err, err2)
			}
		}
		uninstall := func(until time.Time) {
			t.Helper()
			if err := s.Uninstall(t.Context(), ws, "far", "i", until); err != nil {
				t.Fatal(err)
			}
			listed(0)
			_, read := s.Installation(t.Context(), ws, "far")
			_, changed := s.ChangeInstallation(t.Context(), ws, "far", func(*core.Installation) error { return nil })
			wantCodes(t, core.CodeNotFound, map[string]error{"read": read, "changed": changed})
			if err := s.DeleteInstallation(t.Context(), ws, "far", "i"); err != nil {
				t.Error(err)
			}
			if waiting, err := s.Uninstalled(t.Context()); err != nil || len(waiting) != 1 || !waiting[0].UndoUntil.Equal(until.Truncate(time.Millisecond)) {
				t.Errorf("uninstalled: %+v, %v", waiting, err)
			}
			if due, err := s.ClaimRevocations(t.Context(), 9, 0); err != nil || len(due) != 0 {
				t.Errorf("%d revocations before the end: %v", len(due), err)
			}
		}
		if err := s.Uninstall(t.Context(), ws, "far", "another", time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		listed(1)
		uninstall(time.Now().Add(time.Minute))
		for _, purge := range []func(context.Context) error{
			func(ctx context.Context) error { return s.PurgeUninstalled(ctx, "", "") },
			func(ctx context.Context) error { return s.PurgeUninstalled(ctx, ws, "another") },
			func(ctx context.Context) error { return s.PurgeUninstalled(ctx, "ws_other", "far") },
		} {
			if err := purge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		restored, err := all[len(all)-1].RestoreInstallation(t.Context(), ws, "far")
		if err != nil || !reflect.DeepEqual(restored, before) {
			t.Fatalf("restored %+v, %v, want %+v", restored, err, before)
		}
		listed(1)
		if has, err := s.HasStandingApproval(t.Context(), ws, "far__b", "one"); err != nil || !has {
			t.Errorf("the standing approval is gone: %v", err)
		}
		if lists, err := s.KeptLists(t.Context(), ws, "far", "sum"); err != nil || lists != "{}" {
			t.Errorf("the lists are gone: %v", err)
		}
		if got, err := s.Account(t.Context(), a.ID); err != nil || got.Grant.RefreshToken != a.Grant.RefreshToken {
			t.Errorf("the account is gone: %v", err)
		}

		for name, end := range map[string]func() error{
			"after the deadline": func() error {
				uninstall(time.Now().Add(-time.Millisecond))
				_, late := s.RestoreInstallation(t.Context(), ws, "far")
				wantCodes(t, core.CodeNotFound, map[string]error{"late": late})
				_, err := s.Purge(t.Context(), Retention{}) // servers do this if nobody waited for the end
				return err
			},
			"for another app": func() error {
				uninstall(time.Now().Add(time.Minute))
				return s.PurgeUninstalled(t.Context(), ws, "far")
			},
		} {
			if err := end(); err != nil {
				t.Fatal(err)
			}
			_, restored := s.RestoreInstallation(t.Context(), ws, "far")
			_, account := s.Account(t.Context(), a.ID)
			_, lists := s.KeptLists(t.Context(), ws, "far", "sum")
			wantCodes(t, core.CodeNotFound, map[string]error{name + ": restored": restored, name + ": account": account, name + ": lists": lists})
			if has, err := s.HasStandingApproval(t.Context(), ws, "far__b", "one"); err != nil || has {
				t.Errorf("%s: the standing approval was not removed: %v", name, err)
			}
			due, err := s.ClaimRevocations(t.Context(), 9, 0)
			if err != nil || len(due) != 1 {
				t.Errorf("%s: %d revocations: %v", name, len(due), err)
			}
			for _, one := range due {
				if err := s.RevocationDone(t.Context(), one.Account); err != nil {
					t.Error(err)
				}
			}
			a = linkOne(t, s)
			if err := s.PutKeptLists(t.Context(), ws, "far", "sum", "{}"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestARecentlyUninstalledAppDoesNotKeepItsWorkspace(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice := provision(t, s, core.Identity{Issuer: "https://idp", Subject: "alice"})
		w, err := s.CreateWorkspace(t.Context(), "Team", alice.ID)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, core.Installation{ID: "i", Workspace: w.ID, Name: "far", InstalledAt: time.UnixMilli(7)})
		wantCodes(t, core.CodeForbidden, map[string]error{"with an app": s.DeleteWorkspace(t.Context(), w.ID)})
		if err := s.Uninstall(t.Context(), w.ID, "far", "i", time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteWorkspace(t.Context(), w.ID); err != nil {
			t.Error(err)
		}
		_, err = s.RestoreInstallation(t.Context(), w.ID, "far")
		wantCodes(t, core.CodeNotFound, map[string]error{"restored": err})
	})
}

func TestAnApprovalDoesNotOutliveItsApp(t *testing.T) {
	eachSealed(t, func(t *testing.T, all []*Store) {
		s, ws := all[0], core.DefaultWorkspaceID
		linkOne(t, s)
		long := strings.Repeat("n", 60) // the names of its tools are shortened
		put(t, s, core.Installation{ID: "l", Workspace: ws, Name: long, InstalledAt: time.UnixMilli(7).UTC()})
		for id, tool := range map[string]string{"apr_waiting": "far__a", "apr_approved": "far__b", "apr_other": "farther__b", "apr_long": core.Tool{Server: long, Name: "pay"}.FullName()} {
			call := waitingCall(id, id)
			call.Tool = tool
			if _, _, err := s.RequestApproval(t.Context(), call, 9); err != nil {
				t.Fatal(err)
			}
			if id == "apr_waiting" {
				continue
			}
			call.State, call.DecidedBy, call.DecidedAt = core.ApprovalApproved, core.User{ID: "usr_b"}, time.Now()
			if err := s.DecideApproval(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.DeleteInstallation(t.Context(), ws, "far", "i"), s.DeleteInstallation(t.Context(), ws, long, "l")); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]core.ApprovalState{"apr_waiting": core.ApprovalCancelled, "apr_approved": core.ApprovalCancelled, "apr_other": core.ApprovalApproved, "apr_long": core.ApprovalCancelled} {
			if a, err := s.Approval(t.Context(), ws, id); err != nil || a.State != want {
				t.Errorf("%s is %s, want %s: %v", id, a.State, want, err)
			}
		}
		if taken, err := s.TakeApproval(t.Context(), ws, "apr_approved"); err != nil || taken {
			t.Errorf("an approved call to a deleted app should not be possible: %v", err)
		}
	})
}
