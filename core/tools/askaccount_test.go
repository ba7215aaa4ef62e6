package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
)

// namedAccounts is a fake of the linked accounts. It has every account that a call names, and records the names.
type namedAccounts struct{ names []string }

func (a *namedAccounts) Choose(_ context.Context, _ core.Caller, _ string, w core.AccountWanted) (core.Account, error) {
	a.names = append(a.names, w.Name)
	return core.Account{ID: "acc_" + w.Name, Name: w.Name}, nil
}

func (*namedAccounts) Offer(_ core.Caller, _, _ string, shared *core.Offer) *core.Offer {
	return shared
}

func (*namedAccounts) PublishExchangeApps(core.Caller) {}

func (*namedAccounts) Needed(_ core.Caller, _ core.Account, err error) error { return err }

func (*namedAccounts) Await(context.Context, core.Caller, core.AccountNeeded, time.Time) (core.Account, error) {
	return core.Account{}, nil
}

func TestAnAppCannotChooseTheAccountForTheNextRound(t *testing.T) {
	const request = `{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object"}}}`
	for _, state := range []string{`"ropewalk.account work "`, `"ropewalk.account work \"s\""`, `"ropewalk.account  \"ropewalk.account work \""`, `"\u0072opewalk.account work "`, `"s"`} {
		y, chosen := twoApps(), &namedAccounts{}
		n := tools.New(tools.Options{Apps: y, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Accounts: chosen})
		call := tools.Call{Name: "clock__get-time", From: tools.From{Stateless: true}}
		y.result = `{"resultType":"input_required","requestState":` + state + `,"inputRequests":{"q":` + request + `}}`
		raw, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), call)
		if err != nil {
			t.Fatal(err)
		}
		var asked struct{ RequestState json.RawMessage }
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Fatal(err)
		}
		y.result = `{"content":[]}`
		call.RequestState, call.InputResponses = asked.RequestState, json.RawMessage(`{"q":{"action":"accept"}}`)
		if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), call); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(chosen.names, "work") {
			t.Errorf("the state %s chose an account: %q", state, chosen.names)
		}
		sent := y.asked()
		if last := sent[len(sent)-1]; !strings.Contains(last, `"requestState":`+state) {
			t.Errorf("the app with the state %s was sent %s", state, last)
		}
	}
	for _, name := range []string{"ropewalk.account", "ropewalk.login"} {
		y := twoApps()
		y.result = `{"resultType":"input_required","inputRequests":{"` + name + `":` + request + `}}`
		n := tools.New(tools.Options{Apps: y, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Accounts: &namedAccounts{}})
		if raw, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "clock__get-time", From: tools.From{Stateless: true}}); err == nil {
			t.Errorf("the app should not be able to ask under the name %s: %s", name, raw)
		}
	}
}
