package audit_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
)

// opened returns an audit file with the given records.
func opened(t *testing.T, records ...core.AuditRecord) *audit.File {
	t.Helper()
	f, err := audit.OpenFile(filepath.Join(t.TempDir(), "audit.log"), audit.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(t.Context()) })
	for _, r := range records {
		if err := f.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// targets returns the targets on every page of a query, one entry per page.
func targets(t *testing.T, f *audit.File, q core.AuditQuery) (pages []string) {
	t.Helper()
	for {
		page, err := f.Records(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range page.Records {
			names = append(names, r.Target)
		}
		pages = append(pages, strings.Join(names, " "))
		if page.Next == "" {
			return pages
		}
		q.Cursor = page.Next
	}
}

func TestRecordsAreReadFromTheNewestInPages(t *testing.T) {
	var all []core.AuditRecord
	for i := range 5 {
		all = append(all, core.AuditRecord{Action: "tools.call", Target: fmt.Sprint(i), Outcome: "ok"})
	}
	f := opened(t, all...)
	for limit, want := range map[int][]string{1: {"4", "3", "2", "1", "0"}, 2: {"4 3", "2 1", "0"}, 5: {"4 3 2 1 0"}, 100: {"4 3 2 1 0"}} {
		if got := targets(t, f, core.AuditQuery{Limit: limit}); strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	if got := targets(t, opened(t), core.AuditQuery{Limit: 3}); len(got) != 1 || got[0] != "" {
		t.Errorf("an empty file: %q", got)
	}
}

func TestAPageStartsWhereTheLastOneEndedWhileRecordsAreAdded(t *testing.T) {
	f := opened(t, core.AuditRecord{Target: "a"}, core.AuditRecord{Target: "b"}, core.AuditRecord{Target: "c"})
	first, err := f.Records(t.Context(), core.AuditQuery{Limit: 1})
	if err != nil || len(first.Records) != 1 || first.Records[0].Target != "c" {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := f.Write(t.Context(), core.AuditRecord{Target: "d"}); err != nil {
		t.Fatal(err)
	}
	if got := targets(t, f, core.AuditQuery{Limit: 10, Cursor: first.Next}); len(got) != 1 || got[0] != "b a" {
		t.Errorf("the second page is %q", got)
	}
	for _, cursor := range []string{"x", "-1", "0", "7", "1-0", "1-7", "1--1", "01-7", "1-99999999", "2-1", "0-1", "1-7-7"} {
		if _, err := f.Records(t.Context(), core.AuditQuery{Limit: 1, Cursor: cursor}); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestRecordsAreSelectedByEachFilter(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := opened(t,
		core.AuditRecord{Time: noon, Actor: "usr_a", Workspace: "ws_a", Action: "tools.call", Target: "files__read", Outcome: "allowed"},
		core.AuditRecord{Time: noon.Add(24 * time.Hour), Actor: "usr_b", Workspace: "ws_b", Action: "POST /v1/apps/install", Outcome: "forbidden"},
		core.AuditRecord{Time: noon.Add(48 * time.Hour), Actor: "usr_a", Workspace: "ws_b", Action: "DELETE /v1/apps/files", Target: "files", Outcome: "ok"},
	)
	for name, c := range map[string]struct {
		q    core.AuditQuery
		want string // the outcomes
	}{
		"all":       {core.AuditQuery{}, "ok forbidden allowed"},
		"workspace": {core.AuditQuery{Workspace: "ws_b"}, "ok forbidden"},
		"actor":     {core.AuditQuery{Actor: "usr_a"}, "ok allowed"},
		"action":    {core.AuditQuery{Action: "/v1/apps"}, "ok forbidden"},
		"target":    {core.AuditQuery{Target: "files"}, "ok allowed"},
		"outcome":   {core.AuditQuery{Outcome: "forbidden"}, "forbidden"},
		"from":      {core.AuditQuery{From: noon.Add(24 * time.Hour)}, "ok forbidden"},
		"to":        {core.AuditQuery{To: noon.Add(24 * time.Hour)}, "allowed"},
		"several":   {core.AuditQuery{Actor: "usr_a", Workspace: "ws_b", Target: "files"}, "ok"},
		"none":      {core.AuditQuery{Actor: "usr"}, ""},
	} {
		c.q.Limit = 10
		page, err := f.Records(t.Context(), c.q)
		var got []string
		for _, r := range page.Records {
			got = append(got, r.Outcome)
		}
		if err != nil || page.Next != "" || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestLongLinesAreReadAndLongArgumentsAreLeftOut(t *testing.T) {
	var all []core.AuditRecord
	for i, size := range []int{0, 4<<10 - 2, 4<<10 - 1, 1 << 16, 1<<16 - 400, 5 << 20, 10, 300_000} {
		arguments := []byte(`"` + strings.Repeat("s", size) + `"`)
		all = append(all, core.AuditRecord{Target: fmt.Sprint(i), Arguments: arguments})
	}
	f := opened(t, all...)
	page, err := f.Records(t.Context(), core.AuditQuery{Limit: 10})
	if err != nil || len(page.Records) != len(all) {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	for i, r := range page.Records {
		written := all[len(all)-1-i]
		want := string(written.Arguments)
		if len(want) > 4<<10 {
			want = fmt.Sprintf(`"left out: %d bytes"`, len(want))
		}
		if r.Target != written.Target || string(r.Arguments) != want {
			t.Errorf("record %d is %s, with %d bytes of arguments", i, r.Target, len(r.Arguments))
		}
	}
}

func TestTheEndOfACallIsReadWithItsArgumentsEvenIfItsStartIsNotOnThePage(t *testing.T) {
	start := func(call, arguments string) core.AuditRecord {
		return core.AuditRecord{Action: "tools.call", Target: "a__b", Outcome: "allowed", CallID: call, Arguments: json.RawMessage(arguments)}
	}
	end := func(call string) core.AuditRecord {
		return core.AuditRecord{Action: "tools.call.ended", Target: "a__b", Outcome: "ok", CallID: call}
	}
	f := opened(t, start("1", `{"n":1}`), start("2", `{"n":2}`), core.AuditRecord{Action: "x", Outcome: "ok"}, start("3", `{"n":3}`), end("1"), end("3"), end("2"))
	for name, q := range map[string]core.AuditQuery{
		"only ends": {Action: ".ended", Limit: 10}, "only good ones": {Outcome: "ok", Target: "a__b", Limit: 10}, "one a page": {Action: ".ended", Limit: 1},
	} {
		var got []string
		for {
			page, err := f.Records(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				got = append(got, r.CallID+" "+string(r.Arguments))
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		if want := `2 {"n":2}, 3 {"n":3}, 1 {"n":1}`; strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestARareRecordInALargeFileIsFoundAcrossPages(t *testing.T) {
	filling := []byte(`"` + strings.Repeat("s", 6<<20) + `"`)
	f := opened(t,
		core.AuditRecord{Target: "rare"}, core.AuditRecord{Arguments: filling}, core.AuditRecord{Arguments: filling}, core.AuditRecord{Arguments: filling},
		core.AuditRecord{Arguments: filling},
	)
	pages := targets(t, f, core.AuditQuery{Target: "rare", Limit: 10})
	if len(pages) != 2 || pages[0] != "" || pages[1] != "rare" {
		t.Errorf("the pages are %q", pages)
	}
}

func TestALogWithoutAFileSaysThatNoneIsConfigured(t *testing.T) {
	var none *audit.Log
	if _, err := none.Records(t.Context(), core.AuditQuery{Limit: 1}); core.CodeOf(err) != core.CodeNotConfigured || !strings.Contains(err.Error(), "audit.file") {
		t.Errorf("%v", err)
	}
}

func TestADamagedLineIsReportedWithItsPosition(t *testing.T) {
	path := written(t, 2)
	f, err := audit.OpenFile(path, audit.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close(t.Context()) }()
	raw := read(t, path)
	raw[0] = 'x'
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Records(t.Context(), core.AuditQuery{Limit: 10}); err == nil || !strings.Contains(err.Error(), "byte 0") {
		t.Errorf("%v", err)
	}
}
