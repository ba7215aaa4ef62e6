package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func waitingCall(id, fingerprint string) core.Approval {
	return core.Approval{
		ID: id, Workspace: core.DefaultWorkspaceID, Caller: core.User{ID: "usr_a"}, Tool: "a__b", Fingerprint: fingerprint,
		Arguments: json.RawMessage(`{"x":1}`), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
}

func decided(workspace, id string, state core.ApprovalState) core.Approval {
	return core.Approval{Workspace: workspace, ID: id, State: state, DecidedBy: core.User{ID: "usr_b"}, DecidedAt: time.Now(), Reason: "why"}
}

func TestAnApprovalIsUsedOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ws := core.DefaultWorkspaceID
		a, first, err := s.RequestApproval(t.Context(), waitingCall("apr_1", "f"), 2)
		if err != nil || !first || a.ID != "apr_1" || a.State != core.ApprovalPending || string(a.Arguments) != `{"x":1}` {
			t.Fatalf("%+v %v %v", a, first, err)
		}
		if again, first, err := s.RequestApproval(t.Context(), waitingCall("apr_2", "f"), 2); err != nil || first || again.ID != "apr_1" {
			t.Errorf("the same call again: %+v %v %v", again, first, err)
		}
		if _, _, err := s.RequestApproval(t.Context(), waitingCall("apr_3", "g"), 2); err != nil {
			t.Fatal(err)
		}
		_, _, crowded := s.RequestApproval(t.Context(), waitingCall("apr_4", "h"), 2)
		wantCodes(t, core.CodeRateLimited, map[string]error{"a third": crowded})
		if taken, err := s.TakeApproval(t.Context(), ws, "f"); taken || err != nil {
			t.Errorf("used before it was approved: %v", err)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{
			"another workspace": s.DecideApproval(t.Context(), decided("ws_other", "apr_1", core.ApprovalApproved)),
			"another id":        s.DecideApproval(t.Context(), decided(ws, "apr_9", core.ApprovalApproved)),
		})
		if err := s.DecideApproval(t.Context(), decided(ws, "apr_1", core.ApprovalApproved)); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"twice": s.DecideApproval(t.Context(), decided(ws, "apr_1", core.ApprovalRefused))})
		var taken atomic.Int32
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				ok, err := s.TakeApproval(t.Context(), ws, "f")
				if err != nil {
					t.Error(err)
				}
				if ok {
					taken.Add(1)
				}
			})
		}
		calls.Wait()
		if taken.Load() != 1 {
			t.Errorf("the approval was used %d times", taken.Load())
		}
		if one, err := s.Approval(t.Context(), ws, "apr_1"); err != nil || one.State != core.ApprovalUsed || one.DecidedBy.ID != "usr_b" {
			t.Errorf("%+v %v", one, err)
		}
		if all, err := s.Approvals(t.Context(), ws, core.ApprovalQuery{Caller: "usr_x"}); err != nil || len(all.Approvals) != 0 {
			t.Errorf("the approvals of another caller: %+v %v", all, err)
		}
		if all, err := s.Approvals(t.Context(), ws, core.ApprovalQuery{}); err != nil || len(all.Approvals) != 2 {
			t.Errorf("the approvals of all callers: %+v %v", all, err)
		}
	})
}

func TestAnExpiredApprovalIsNotUsed(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		late := waitingCall("apr_1", "f")
		late.ExpiresAt = time.Now().Add(-time.Millisecond)
		if _, _, err := s.RequestApproval(t.Context(), late, 9); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"approved late": s.DecideApproval(t.Context(), decided(late.Workspace, "apr_1", core.ApprovalApproved))})
		expired, next, err := s.ExpireApprovals(t.Context())
		if err != nil || len(expired) != 1 || expired[0].ID != "apr_1" || expired[0].Tool != "a__b" || !next.IsZero() {
			t.Errorf("%+v, the next at %s, %v", expired, next, err)
		}
		if again, _, err := s.ExpireApprovals(t.Context()); err != nil || len(again) != 0 {
			t.Errorf("the approval ended twice: %+v %v", again, err)
		}
		if _, first, err := s.RequestApproval(t.Context(), waitingCall("apr_2", "f"), 9); err != nil || !first {
			t.Errorf("the same call after that: %v %v", first, err)
		}
		if _, next, err := s.ExpireApprovals(t.Context()); err != nil || time.Until(next) <= 0 {
			t.Errorf("the next approval expires at %s, %v", next, err)
		}
		if one, _ := s.Approval(t.Context(), late.Workspace, "apr_1"); one.State != core.ApprovalExpired {
			t.Errorf("it is %s", one.State)
		}
	})
}

// Anybody can make calls wait, and let them end: they must not fill the disk for as long as ended approvals are kept.
func TestOnlyCallsThatWereDecidedOnKeepTheirArguments(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ws := core.DefaultWorkspaceID
		put(t, s, core.Installation{ID: "i", Workspace: ws, Name: "a"})
		for _, end := range []struct {
			id  string
			end func(id string) error
		}{
			{"cancelled", func(id string) error { _, err := s.CancelApproval(t.Context(), ws, id); return err }},
			{"expired", func(string) error { _, _, err := s.ExpireApprovals(t.Context()); return err }},
			{"uninstalled", func(string) error { return s.DeleteInstallation(t.Context(), ws, "a", "i") }},
		} {
			for _, isDecided := range []bool{false, true} {
				a := waitingCall(fmt.Sprint(end.id, isDecided), fmt.Sprint(end.id, isDecided))
				if _, _, err := s.RequestApproval(t.Context(), a, 9); err != nil {
					t.Fatal(err)
				}
				if isDecided {
					if err := s.DecideApproval(t.Context(), decided(ws, a.ID, core.ApprovalApproved)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if end.id == "expired" {
				if err := s.db.Exec(t.Context(), "", `UPDATE approvals SET expires_at = 1 WHERE state IN ('pending', 'approved')`); err != nil {
					t.Fatal(err)
				}
			}
			for _, isDecided := range []bool{false, true} {
				id, want := fmt.Sprint(end.id, isDecided), map[bool]string{true: `{"x":1}`}[isDecided]
				if err := end.end(id); err != nil {
					t.Fatal(err)
				}
				a, err := s.Approval(t.Context(), ws, id)
				if err != nil || string(a.Arguments) != want || a.Tool != "a__b" || a.Caller.ID != "usr_a" || a.State == core.ApprovalPending || a.State == core.ApprovalApproved {
					t.Errorf("%s: %+v, want the arguments %q: %v", id, a, want, err)
				}
			}
		}
	})
}

func TestArgumentsAreStoredWithoutHTMLEscapes(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		a := waitingCall("apr_1", "f")
		a.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("<>&", 1000) + `"}`)
		stored, _, err := s.RequestApproval(t.Context(), a, 9)
		if err != nil || string(stored.Arguments) != string(a.Arguments) {
			t.Errorf("stored %.100s: %v", stored.Arguments, err)
		}
	})
}

func TestManyExpiredApprovalsEndWithoutTheirArguments(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const calls = 2*expireAtOnce + 1
		for i := range calls {
			late := waitingCall(fmt.Sprint("apr_", i), fmt.Sprint(i))
			late.ExpiresAt = time.Now().Add(-time.Millisecond)
			if _, _, err := s.RequestApproval(t.Context(), late, calls); err != nil {
				t.Fatal(err)
			}
		}
		expired, next, err := s.ExpireApprovals(t.Context())
		if err != nil || len(expired) != calls || !next.IsZero() {
			t.Fatalf("%d expired, the next at %s, %v", len(expired), next, err)
		}
		for _, a := range expired {
			if a.State != core.ApprovalExpired || len(a.Arguments) != 0 {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestACancelledApprovalIsNotUsed(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ws := core.DefaultWorkspaceID
		for _, approved := range []bool{false, true} {
			a, _, err := s.RequestApproval(t.Context(), waitingCall(fmt.Sprint("apr_", approved), "f"), 9)
			if err != nil {
				t.Fatal(err)
			}
			if approved {
				if err := s.DecideApproval(t.Context(), decided(ws, a.ID, core.ApprovalApproved)); err != nil {
					t.Fatal(err)
				}
			}
			if ended, err := s.CancelApproval(t.Context(), ws, a.ID); err != nil || !ended {
				t.Errorf("%v %v", ended, err)
			}
			if ended, err := s.CancelApproval(t.Context(), ws, a.ID); err != nil || ended {
				t.Errorf("twice: %v %v", ended, err)
			}
			wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"a late decision": s.DecideApproval(t.Context(), decided(ws, a.ID, core.ApprovalApproved))})
			if taken, err := s.TakeApproval(t.Context(), ws, "f"); err != nil || taken {
				t.Errorf("%v %v", taken, err)
			}
		}
	})
}

func TestDecidedApprovalsAreListedInPagesLatestFirst(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ws, at := core.DefaultWorkspaceID, time.Now().Truncate(time.Second)
		for i := range 7 {
			a, _, err := s.RequestApproval(t.Context(), waitingCall(fmt.Sprint("apr_", i), fmt.Sprint(i)), 9)
			if err != nil {
				t.Fatal(err)
			}
			d := decided(ws, a.ID, core.ApprovalRefused)
			d.DecidedAt = at.Add(-time.Duration(i/2) * time.Second) // pairs have the same time
			if i == 6 {
				continue // still waiting
			}
			if err := s.DecideApproval(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		var seen []string
		q := core.ApprovalQuery{Caller: "usr_a", Decided: true, Limit: 2}
		for {
			page, err := s.Approvals(t.Context(), ws, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Approvals {
				if a.Reason != "why" || a.DecidedBy.ID != "usr_b" || a.DecidedAt.IsZero() {
					t.Errorf("%+v", a)
				}
				seen = append(seen, a.ID)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if got := strings.Join(seen, " "); got != "apr_0 apr_1 apr_2 apr_3 apr_4 apr_5" {
			t.Error(got)
		}
		if page, err := s.Approvals(t.Context(), ws, core.ApprovalQuery{State: core.ApprovalPending}); err != nil || len(page.Approvals) != 1 || page.Approvals[0].ID != "apr_6" {
			t.Errorf("the waiting calls: %+v %v", page, err)
		}
		_, limit := s.Approvals(t.Context(), ws, core.ApprovalQuery{Limit: 501})
		_, cursor := s.Approvals(t.Context(), ws, core.ApprovalQuery{Cursor: "no"})
		wantCodes(t, core.CodeBadRequest, map[string]error{"limit": limit, "cursor": cursor})
	})
}

func TestAPageOfApprovalsEndsBeforeItsArgumentsTakeTooMuchMemory(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const calls, length = 40, 256 << 10
		for i := range calls {
			a := waitingCall(fmt.Sprint("apr_", i), fmt.Sprint(i))
			a.Arguments = []byte(`{"text":"` + strings.Repeat("a", length-11) + `"}`)
			if _, _, err := s.RequestApproval(t.Context(), a, calls); err != nil {
				t.Fatal(err)
			}
		}
		seen, q := map[string]bool{}, core.ApprovalQuery{}
		for {
			page, err := s.Approvals(t.Context(), core.DefaultWorkspaceID, q)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(page.Approvals); n == 0 || n*length > approvalBytes {
				t.Fatalf("a page has %d approvals", n)
			}
			for _, a := range page.Approvals {
				seen[a.ID] = true
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if len(seen) != calls {
			t.Errorf("%d of %d approvals are listed", len(seen), calls)
		}
	})
}

func TestADecisionOnACallReachesTheServerWhereItWaits(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	if _, _, err := a.RequestApproval(t.Context(), waitingCall("apr_1", "f"), 9); err != nil {
		t.Fatal(err)
	}
	seen := a.Changes(t.Context())
	if err := b.DecideApproval(t.Context(), decided(core.DefaultWorkspaceID, "apr_1", core.ApprovalApproved)); err != nil {
		t.Fatal(err)
	}
	if c := next(t, seen); c != (core.Change{Kind: core.ChangeApproval, Workspace: core.DefaultWorkspaceID, Name: "apr_1"}) {
		t.Errorf("%+v", c)
	}
	if taken, err := a.TakeApproval(t.Context(), core.DefaultWorkspaceID, "f"); err != nil || !taken {
		t.Errorf("%v %v", taken, err)
	}
}

func TestAStandingApprovalCoversOneDefinitionOfAToolAndIsDeletedWithItsApp(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ws := core.DefaultWorkspaceID
		grant := func(id, definition string) {
			t.Helper()
			call := waitingCall(id, id)
			call.Definition = definition
			if _, _, err := s.RequestApproval(t.Context(), call, 9); err != nil {
				t.Fatal(err)
			}
			stored, err := s.Approval(t.Context(), ws, id)
			if err != nil || stored.Definition != definition {
				t.Fatalf("%+v %v", stored, err)
			}
			stored.State, stored.Always, stored.DecidedBy, stored.DecidedAt = core.ApprovalApproved, true, core.User{ID: "usr_b"}, time.Now()
			if err := s.DecideApproval(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
		}
		stands := func(workspace, definition string) bool {
			t.Helper()
			has, err := s.HasStandingApproval(t.Context(), workspace, "a__b", definition)
			if err != nil {
				t.Error(err)
			}
			return has
		}
		grant("apr_1", "one")
		if !stands(ws, "one") || stands(ws, "two") || stands("ws_other", "one") {
			t.Error("the approval should apply only to this definition in this workspace")
		}
		grant("apr_2", "two")
		if stands(ws, "one") || !stands(ws, "two") {
			t.Error("the newer approval should replace the older one")
		}
		all, err := s.StandingApprovals(t.Context(), ws)
		if err != nil || len(all) != 1 || all[0].Tool != "a__b" || all[0].By.ID != "usr_b" || all[0].Since.IsZero() {
			t.Fatalf("%+v %v", all, err)
		}
		shown := func(string) bool { return true }
		_, other := s.WithdrawApproval(t.Context(), "ws_other", all[0].ID, shown)
		_, hidden := s.WithdrawApproval(t.Context(), ws, all[0].ID, func(string) bool { return false })
		wantCodes(t, core.CodeNotFound, map[string]error{"another workspace": other, "a hidden tool": hidden})
		if one, err := s.WithdrawApproval(t.Context(), ws, all[0].ID, shown); err != nil || one.Tool != "a__b" || stands(ws, "two") {
			t.Errorf("%+v %v", one, err)
		}
	})
}
