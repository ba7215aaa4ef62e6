package table

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
)

func TestGeneratedWordsHaveTheirDocumentedFrequencies(t *testing.T) {
	b := &bench{log: hclog.NewNullLogger()}
	p := place{options: store.Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}}
	if err := b.fill(t.Context(), p, 2_000); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for search, want := range map[string]int{"": 2_000, "always": 2_000, "often always": 1_600, "formerly": 200, "seldom077": 2, "nowhere": 0} {
		page, err := st.Conversations(t.Context(), workspace, core.Owner().User.ID, core.ConversationQuery{Search: search})
		if err != nil || page.TotalCount != want {
			t.Errorf("%q: %d, %v, want %d", search, page.TotalCount, err, want)
		}
	}
	if rate, err := grow(t.Context(), st, 2, 50*time.Millisecond); err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
	if rate, err := bareSyncs(t.TempDir(), 50*time.Millisecond); err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
}

// pagesOf serves a list of n conversations, and returns its address.
func pagesOf(t *testing.T, n int) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, limit := 0, 20
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		until, next := min(from+limit, n), "null"
		if until < n {
			next = fmt.Sprintf(`"%d"`, until)
		}
		_, _ = fmt.Fprintf(w, `{"conversations":[%s],"nextCursor":%s,"totalCount":%d}`, strings.TrimSuffix(strings.Repeat("{},", until-from), ","), next, n)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestADeepListIsReadFromItsMiddle(t *testing.T) {
	l := &list{reading: reading{deep: true, query: url.Values{"search": {"x"}}}, url: pagesOf(t, 1_000)}
	if err := l.seekMiddle(t.Context()); err != nil || l.cursor != "500" || len(l.took) != 0 {
		t.Fatalf("%v, at %s with %d samples", err, l.cursor, len(l.took))
	}
	if err := l.ask(t.Context()); err != nil || l.cursor != "520" || len(l.took) != 1 || l.found != 1_000 {
		t.Errorf("%v, %+v", err, l)
	}
	first := &list{url: pagesOf(t, 1_000)}
	for range 2 { // the same page repeatedly
		if err := first.ask(t.Context()); err != nil || first.cursor != "20" {
			t.Errorf("%v, at %s", err, first.cursor)
		}
	}
	if err := (&list{reading: reading{deep: true}, url: pagesOf(t, 10)}).ask(t.Context()); err == nil {
		t.Error("measuring a list that has ended should return an error")
	}
}

func TestOmittedMeasurementsHaveTheirOwnRow(t *testing.T) {
	b := &bench{}
	b.addSkipped("message appends, PostgreSQL", errNoPostgres)
	var out bytes.Buffer
	if err := Print(&out, b.rows); err != nil || !b.rows[0].Good() || !strings.Contains(out.String(), "skipped: PostgreSQL is not installed") || strings.Contains(out.String(), "MISSED") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestAStartedDatabaseCanBeUsed(t *testing.T) {
	b := &bench{log: hclog.NewNullLogger(), dir: t.TempDir(), o: Options{Log: &bytes.Buffer{}}}
	t.Cleanup(func() { _ = b.tidy() })
	t.Cleanup(b.stopAll)
	places, err := b.places(context.Background(), "writes")
	if err != nil {
		t.Fatal(err)
	}
	if places[1].missing != nil {
		t.Fatalf("this test needs PostgreSQL: %v", places[1].missing)
	}
	if err := b.fill(t.Context(), places[1], 100); err != nil {
		t.Fatal(err)
	}
}
