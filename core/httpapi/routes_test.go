package httpapi

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
)

var update = flag.Bool("update", false, "write the table of routes into docs/api.md")

const apiPage = "../../docs/api.md"

// matrix returns the route table in the form used in docs/api.md.
func matrix(routes []route) string {
	var b strings.Builder
	b.WriteString("| Route | Caller | Role | Feature flag | Body |\n|---|---|---|---|---|\n")
	for _, r := range routes {
		caller := string(r.audience)
		if r.requires.Login {
			caller += ", not with an API key"
		}
		flags := ""
		if len(r.requires.Flags) > 0 {
			flags = "`" + strings.Join(r.requires.Flags, "` or `") + "`"
		}
		body := r.action.takes
		if r.action.most > 0 {
			body += fmt.Sprintf(", %d MiB", r.action.most>>20)
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s |\n", r.method, r.path, caller, r.requires.Role, flags, body)
	}
	return b.String()
}

// The table in docs/api.md is generated: go test ./core/httpapi -run Matrix -update
func TestTheDocumentedMatrixMatchesTheRouteTable(t *testing.T) {
	page, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), "<!-- routes -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of routes -->\n")
	if !begins || !ends {
		t.Fatal("docs/api.md has no place for the table of routes")
	}
	want := before + "<!-- routes -->\n" + matrix(open(t, newAccess(), nil).routes()) + "<!-- end of routes -->\n" + after
	if *update {
		if err := os.WriteFile(apiPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Error("docs/api.md is not up to date: go test ./core/httpapi -run Matrix -update")
	}
}

// Each route refuses the callers that the table excludes, before it reads the body. The table itself is the reference
// model. The test covers callers with every combination of roles, with and without an API key, and with the flags on
// and off.
func TestEveryRouteRefusesTheCallersThatTheTableExcludes(t *testing.T) {
	roles := []core.Role{core.RoleMember, core.RoleAdmin}
	a := newAccess()
	for _, organization := range roles {
		for _, workspace := range roles {
			for _, issuer := range []string{"https://idp.example", core.IssuerKey} {
				name := fmt.Sprint(organization, workspace, issuer == core.IssuerKey)
				a.user(name, organization, core.Workspace{ID: core.DefaultWorkspaceID, Role: workspace})
				id := a.bearers[name]
				id.Issuer = issuer
				a.bearers[name] = id
			}
		}
	}
	all := open(t, a, nil)
	var off []string
	for _, r := range all.routes() {
		off = append(off, r.requires.Flags...)
	}
	without := open(t, a, func(o *Options) { o.Features = allFeatures(off) })
	for name, id := range a.bearers {
		caller, err := a.Caller(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		for h, on := range map[*testServer]bool{all: true, without: false} {
			for _, r := range all.routes() {
				if r.audience == authn.Anyone {
					continue
				}
				err := r.requires.Check(caller, func(string) bool { return on }, "this")
				if r.path == "/v1/events" { // a response that does not end
					continue
				}
				got := h.do(t, call{method: r.method, path: concrete(r.path), body: bodyOf(r), header: map[string]string{"Authorization": "Bearer " + name}})
				refused := got.code() == string(core.CodeForbidden) || got.code() == string(core.CodeFeatureDisabled)
				if err != nil && got.code() != string(core.CodeOf(err)) || err == nil && refused {
					t.Errorf("%s %s of %s, flags on: %v: %d %s, want %v", r.method, r.path, name, on, got.StatusCode, got.body, err)
				}
			}
		}
	}
}

// bodyOf returns a body that no route can decode, so that a route that admits the caller does nothing.
func bodyOf(r route) string {
	if r.action.takes == "" {
		return ""
	}
	return "{"
}
