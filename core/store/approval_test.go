package store

import (
	"encoding/json"
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
			"another workspace": s.DecideApproval(t.Context(), "ws_other", "apr_1", "usr_b", core.ApprovalApproved),
			"another id":        s.DecideApproval(t.Context(), ws, "apr_9", "usr_b", core.ApprovalApproved),
		})
		if err := s.DecideApproval(t.Context(), ws, "apr_1", "usr_b", core.ApprovalApproved); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"twice": s.DecideApproval(t.Context(), ws, "apr_1", "usr_b", core.ApprovalRefused)})
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
			t.Errorf("used %d times", taken.Load())
		}
		if one, err := s.Approval(t.Context(), ws, "apr_1"); err != nil || one.State != core.ApprovalUsed || one.DecidedBy != "usr_b" {
			t.Errorf("%+v %v", one, err)
		}
		if all, err := s.Approvals(t.Context(), ws, "usr_x"); err != nil || len(all) != 0 {
			t.Errorf("of another caller: %+v %v", all, err)
		}
		if all, err := s.Approvals(t.Context(), ws, ""); err != nil || len(all) != 2 {
			t.Errorf("of everybody: %+v %v", all, err)
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
		wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"approved late": s.DecideApproval(t.Context(), late.Workspace, "apr_1", "usr_b", core.ApprovalApproved)})
		if _, first, err := s.RequestApproval(t.Context(), waitingCall("apr_2", "f"), 9); err != nil || !first {
			t.Errorf("the same call after that: %v %v", first, err)
		}
		if one, _ := s.Approval(t.Context(), late.Workspace, "apr_1"); one.State != core.ApprovalExpired {
			t.Errorf("it is %s", one.State)
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
	if err := b.DecideApproval(t.Context(), core.DefaultWorkspaceID, "apr_1", "usr_b", core.ApprovalApproved); err != nil {
		t.Fatal(err)
	}
	if c := next(t, seen); c != (core.Change{Kind: core.ChangeApproval, Workspace: core.DefaultWorkspaceID, Name: "apr_1"}) {
		t.Errorf("%+v", c)
	}
	if taken, err := a.TakeApproval(t.Context(), core.DefaultWorkspaceID, "f"); err != nil || !taken {
		t.Errorf("%v %v", taken, err)
	}
}
