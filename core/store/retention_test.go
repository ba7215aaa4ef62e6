package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestUsageOlderThanItsRetentionIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		owner := core.Owner().User.ID
		for _, age := range []time.Duration{0, 23 * time.Hour, 25 * time.Hour, 400 * 24 * time.Hour} {
			if err := s.PutUsage(t.Context(), core.Usage{Workspace: core.DefaultWorkspaceID, User: owner, Model: "m", At: time.Now().Add(-age), InputTokens: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Purge(t.Context(), Retention{}); n != 0 || err != nil {
			t.Errorf("without a retention %d rows are deleted, %v", n, err)
		}
		if n, err := s.Purge(t.Context(), Retention{Usage: 24 * time.Hour}); n != 2 || err != nil {
			t.Errorf("%d rows are deleted, %v", n, err)
		}
		report, err := s.Usage(t.Context(), core.UsageQuery{Workspace: core.DefaultWorkspaceID})
		if err != nil || report.Totals.LLMCalls != 2 {
			t.Errorf("%+v, %v", report.Totals, err)
		}
	})
}

func TestAFileShrinksWhenMuchOfItIsUnused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	s := openAt(t, path)
	use := func(bytes int) {
		t.Helper()
		for _, value := range []string{string(make([]byte, bytes)), ""} {
			if err := s.PutSetting(t.Context(), "large", value); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func() int64 {
		if _, err := s.db.WritePool().ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	use(4 << 20)
	large := size()
	if err := s.db.Vacuum(t.Context()); err != nil || size() != large {
		t.Errorf("a little unused space: %d of %d bytes, %v", size(), large, err)
	}
	use(20 << 20)
	large = size()
	if err := s.db.Vacuum(t.Context()); err != nil || size() > large/2 {
		t.Errorf("%d of %d bytes, %v", size(), large, err)
	}
}

func TestApprovalsAreDeletedSomeTimeAfterTheyExpire(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i, expired := range []time.Duration{-time.Hour, time.Hour, 23 * time.Hour, 25 * time.Hour, 400 * 24 * time.Hour} {
			now := time.Now()
			a := core.Approval{ID: fmt.Sprint("apr_", i), Workspace: core.DefaultWorkspaceID, Caller: core.Owner().User, Tool: "t", Fingerprint: fmt.Sprint(i), CreatedAt: now, ExpiresAt: now.Add(-expired)}
			if _, _, err := s.RequestApproval(t.Context(), a, 100); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Purge(t.Context(), Retention{Approvals: 24 * time.Hour}); n != 2 || err != nil {
			t.Errorf("%d rows are deleted, %v", n, err)
		}
		if left, err := s.Approvals(t.Context(), core.DefaultWorkspaceID, core.ApprovalQuery{}); err != nil || len(left.Approvals) != 3 {
			t.Errorf("%d approvals remain, %v", len(left.Approvals), err)
		}
	})
}
