package httpapi

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestACallToAStoppedAppReturns503AndTheRemedy(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.tools.err = core.Errorf(core.CodeUnavailable, `app "fake" is stopped; start it first`)
	r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"server":"fake","tool":"add"}`})
	if want := `{"error":"unavailable","message":"app \"fake\" is stopped; start it first"}`; r.StatusCode != 503 || r.body != want {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
