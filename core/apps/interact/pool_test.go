package interact

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

func TestOneUserCannotTakeTheWholeSessionPool(t *testing.T) {
	for _, kind := range []string{"sessions", "calls without a session", "accounts"} {
		b := newBroker(t, nil)
		d, p := newDialog(b, "notes"), b.pool
		p.o.MaxInstances = 4
		reserve := func(user, name string) error {
			key, c := poolKey{dialog: d, session: name}, &Call{Request: link.Request{Sender: user}, Client: NewClient(name, false, nil)}
			if kind == "accounts" {
				key = poolKey{dialog: d, account: name}
			}
			_, err := p.reserve(key, kind == "calls without a session", c)
			return err
		}
		got := 0
		var err error
		for err == nil {
			if err = reserve("mallory", strings.Repeat("m", got+1)); err == nil {
				got++
			}
		}
		if limit := p.maxInstances(poolKey{account: map[bool]string{true: "a"}[kind == "accounts"]}); got != limit/2 {
			t.Errorf("%s: one user got %d of %d", kind, got, limit)
		}
		if core.CodeOf(err) != core.CodeRateLimited || !strings.Contains(err.Error(), "per user") {
			t.Errorf("%s: the refusal is %v", kind, err)
		}
		if err := reserve("victim", "v"); err != nil {
			t.Errorf("%s: another user is refused: %v", kind, err)
		}
		if err := reserve("mallory", "m"); kind == "sessions" && err != nil {
			t.Errorf("%s: an instance that is in use does not serve another call: %v", kind, err)
		}
		b.Wait()
	}
}
