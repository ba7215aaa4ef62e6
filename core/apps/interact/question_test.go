package interact

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func TestARequestStaysOpenWhileAnyCallThatItMayBelongToRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialog(newBroker(t, nil), "notes")
		call := func() (*Call, func()) {
			c := &Call{Client: NewClient("alice", false, json.RawMessage(`{"elicitation":{}}`)), Asker: slowPerson{time.Hour}}
			d.begin(t.Context(), c)
			return c, c.end
		}
		for _, c := range []struct {
			name      string
			bothEnd   bool
			takes     time.Duration
			succeeded bool
		}{
			{"the other call ends", false, time.Hour, true},
			{"both end", true, 20 * time.Minute, false},
		} {
			asking, end := call()
			other, endOther := call()
			time.AfterFunc(10*time.Minute, endOther)
			if c.bothEnd {
				time.AfterFunc(20*time.Minute, end)
			}
			before := time.Now()
			_, err := other.Answer(t.Context(), rpc.Question{Method: instance.MethodElicit}, []link.Caller{asking, other})
			expect(t, c.name+": time", time.Since(before), c.takes)
			expect(t, c.name+": it was answered", err == nil, c.succeeded)
			expect(t, c.name+": the call that asks runs", asking.ctx.Err() == nil, c.succeeded)
			end()
			endOther()
		}
	})
}

func TestUnfinishedElicitationsAreRemoved(t *testing.T) {
	b := newBroker(t, nil)
	notes, other := newDialog(b, "notes"), newDialog(b, "other")
	for i := range maxElicitations + 1 {
		id, _ := json.Marshal(i)
		b.elicitations.record(notes, json.RawMessage(`{"elicitationId":"e`+string(id)+`"}`), "alice")
	}
	session := func(d *Dialog, id string) string {
		return d.ElicitationSession(rpc.Notification{Params: json.RawMessage(`{"elicitationId":"` + id + `"}`)})
	}
	expect(t, "the oldest elicitation", session(notes, "e0"), "")
	expect(t, "the second elicitation", session(notes, "e1"), "alice")
	expect(t, "the number of elicitations kept", len(b.elicitations.sessions), maxElicitations)
	expect(t, "another app's elicitation", session(other, "e1"), "")
	long := strings.Repeat("e", maxElicitationID+1)
	b.elicitations.record(notes, json.RawMessage(`{"elicitationId":"`+long+`"}`), "alice")
	expect(t, "an elicitation with a long ID", session(notes, long), "")
}

func TestARequestNeedsTheAbilitiesThatItsParamsUse(t *testing.T) {
	for _, c := range []struct {
		capabilities, method, params string
		asked                        bool
	}{
		{`{"sampling":{}}`, instance.MethodSample, `{"messages":[]}`, true},
		{`{"sampling":{}}`, instance.MethodSample, `{"messages":[],"tools":[]}`, false},
		{`{"sampling":{}}`, instance.MethodSample, `{"messages":[],"toolChoice":{"mode":"auto"}}`, false},
		{`{"sampling":{"tools":{}}}`, instance.MethodSample, `{"messages":[],"tools":[]}`, true},
		{`{"sampling":{"tools":{}}}`, instance.MethodSample, `{}`, true},
		{`{"elicitation":{}}`, instance.MethodSample, `{}`, false},
		{`{"elicitation":{}}`, instance.MethodElicit, `{"mode":"url"}`, false},
		{`{"elicitation":{"url":{}}}`, instance.MethodElicit, `{"mode":"url"}`, true},
		{`{"elicitation":{"url":{}}}`, instance.MethodElicit, `{}`, false},
		{`{"roots":{}}`, instance.MethodRoots, ``, true},
		{`{"roots":{}}`, "tools/list", ``, true}, // needs no capability
	} {
		call := &Call{Client: NewClient("s", false, json.RawMessage(c.capabilities)), Asker: slowPerson{}}
		expect(t, c.capabilities+" "+c.method+" "+c.params, call.canAsk(neededAbilities(c.method, json.RawMessage(c.params))), c.asked)
	}
}
