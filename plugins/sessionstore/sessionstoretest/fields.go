package sessionstoretest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// kinds are texts that encodings, databases and caches are known to change.
func kinds() []string {
	return []string{
		" leading and trailing ", "UPPER and lower", `"quotes" and \backslashes\`, "line\nbreaks\r\nand\ttabs", "a NUL \x00 inside",
		"e\u0301 is not \u00e9", "Ропы · 綱渡り · 🪢", "\u202eright to left", "\ufeffa mark", "<a href=x>&amp;</a>\u2028",
		"100 %s %d ${x} {{y}} $1", "'; DROP TABLE sessions; --", `{"json": [1]}`, "null", "0", "-1", "1e3", "true", "\u00a0no break", "\x7f\x1b[31m",
	}
}

// varied is a record whose every field differs from that of every other one, is long, and has
// characters of the i-th kind. What it holds in all is far under a kilobyte short of 8 KiB.
func varied(i int) sessionstore.Record {
	all := kinds()
	text := func(field int) string {
		return fmt.Sprintf("%s-%d-%d-%s%s", all[(i+field)%len(all)], i, field, strings.Repeat(all[i%len(all)], 20), all[(i*3+field)%len(all)])
	}
	at := opened().Add(time.Duration(i) * time.Minute)
	return sessionstore.Record{
		ID: newID(), Subject: text(1), Issuer: text(2), WorkspaceID: text(3), ProtocolVersion: text(4),
		ClientInfo: sessionstore.ClientInfo{Name: text(5), Version: text(6)},
		CreatedAt:  at.Add(-time.Duration(i) * 7 * time.Millisecond), LastAccessedAt: at.Add(time.Duration(i) * 13 * time.Millisecond),
	}
}

func fieldsComeBack(ctx context.Context, s sessionstore.Store) error {
	recs := make([]sessionstore.Record, len(kinds()))
	for i := range recs {
		recs[i] = varied(i)
		if err := putAs(ctx, s, recs[i], long); err != nil {
			return kit.Failf("with fields that end in %q: %w", kinds()[i], err)
		}
	}
	for _, want := range recs {
		if err := same(ctx, s, want); err != nil {
			return err
		}
	}
	return nil
}

func replacesEveryField(ctx context.Context, s sessionstore.Store) error {
	first, second := varied(7), varied(3) // the second one was accessed earlier
	second.ID = first.ID
	for _, rec := range []sessionstore.Record{first, second} {
		if err := putAs(ctx, s, rec, long); err != nil {
			return err
		}
	}
	if err := same(ctx, s, second); err != nil {
		return kit.Failf("after a second Put of the id: %w", err)
	}
	return nil
}

// same asks for a record that must be there, equal in every field.
func same(ctx context.Context, s sessionstore.Store, want sessionstore.Record) error {
	got, err := s.Get(ctx, want.ID)
	if err != nil {
		return kit.Failf("Get must find the session; it returned the error %q", err)
	}
	if a, b := normal(got), normal(want); a != b {
		return kit.Failf("Get must return the record\n  %+v\nit returned\n  %+v", b, a)
	}
	return nil
}
