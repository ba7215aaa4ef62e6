package tools_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

// refunds is an app's skill.
const refunds = `{"uri":"skill://x/refunds/SKILL.md","frontmatter":{"name":"refunds","description":"d","x":1.50},"resources":[` +
	`{"uri":"skill://x/refunds/SKILL.md","digest":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3}]}`

const digestAndSize = `"digest":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3`

// skilled returns a namespace with four apps. The apps a and b serve a skill with the same URI, c fails, and huge has a
// list that is too long.
func skilled(views *view.Registry, held ...core.HeldTool) *tools.Namespace {
	apps := &fakeapps.Apps{}
	apps.SetSkilled("a", "b", "c", "huge")
	apps.SetOffer("", &core.Offer{Held: held})
	apps.Answer(func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
		var params struct{ Cursor, URI string }
		_ = json.Unmarshal(c.Params, &params) // the namespace encoded them
		switch {
		case c.Server == "c":
			return nil, core.Errorf(core.CodeUnavailable, "the app is not running")
		case c.Method == "skills/list" && params.Cursor == "":
			return json.RawMessage(`{"skills":[` + refunds + `,{"frontmatter":{}}],"nextCursor":"2"}`), nil
		case c.Method == "skills/list":
			if c.Server == "huge" {
				return json.RawMessage(`{"skills":[{"uri":"own:x","text":"` + strings.Repeat("x", 4<<20) + `"}]}`), nil
			}
			return json.RawMessage(`{"skills":[{"uri":"own:y/daily/SKILL.md","frontmatter":{"name":"daily","description":"d"},"resources":"dynamic"}],"nextCursor":"2"}`), nil
		case params.URI != "skill://x/refunds/SKILL.md":
			return nil, &rpc.Error{Code: -32602, Message: "no such skill"}
		case c.Method == "skills/get":
			return json.RawMessage(`{"skill":` + refunds + `}`), nil
		}
		return json.RawMessage(`{"contents":[{"uri":"` + params.URI + `","text":"of ` + c.Server + `"}]}`), nil
	})
	return tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Views: views})
}

func TestAppsSkillsAreListedWithURIsThatContainTheApp(t *testing.T) {
	n, c := skilled(nil), caller("ws_a", core.RoleMember)
	listed, err := n.ListSkills(t.Context(), c, tools.Request{Params: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	entries := func(app string) string {
		return strings.ReplaceAll(refunds, "skill://", "skill://"+app+"/") +
			`,{"uri":"ropewalk://` + app + `/own:y/daily/SKILL.md","frontmatter":{"name":"daily","description":"d"},"resources":"dynamic"}`
	}
	if want := `{"skills":[` + entries("a") + "," + entries("b") + `]}`; string(listed) != want {
		t.Errorf("listed:\n%s\nwant:\n%s", listed, want)
	}
	uri := json.RawMessage(`{"uri":"skill://b/x/refunds/SKILL.md"}`)
	if got, err := n.GetSkill(t.Context(), c, tools.Request{Params: uri}); err != nil || !strings.HasPrefix(string(got), `{"skill":{"uri":"skill://b/x/`) {
		t.Errorf("skills/get: %s, %v", got, err)
	}
	if got, err := n.ReadResource(t.Context(), c, tools.Request{Params: uri}); err != nil || string(got) != `{"contents":[{"uri":"skill://b/x/refunds/SKILL.md","text":"of b"}]}` {
		t.Errorf("the skill's file: %s, %v", got, err)
	}
	for _, unknown := range []string{"skill://d/x/refunds/SKILL.md", "skill://x/refunds/SKILL.md", "file:///a"} {
		if got, err := n.GetSkill(t.Context(), c, tools.Request{Params: json.RawMessage(`{"uri":"` + unknown + `"}`)}); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("%s: %s, %v", unknown, got, err)
		}
	}
}

// Some hosts refuse the whole list if it contains such a skill, and then lose the skills of all other apps.
func TestASkillThatHostsCannotLoadIsLeftOut(t *testing.T) {
	apps, c := &fakeapps.Apps{}, caller("ws_a", core.RoleMember)
	apps.SetSkilled("a")
	n := tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger()})
	for what, change := range map[string][2]string{
		"":                                        {"", ""},
		"a name that is not text":                 {`"name":"refunds"`, `"name":5`},
		"no name":                                 {`"name":"refunds",`, ``},
		"no description":                          {`"description":"d",`, ``},
		"a description of null":                   {`"description":"d"`, `"description":null`},
		"front matter that is a string":           {`{"name":"refunds","description":"d","x":1.50}`, `"x"`},
		"a name that differs from the path":       {`"name":"refunds"`, `"name":"other"`},
		"no resources":                            {`"resources"`, `"files"`},
		"resources that are a string":             {`"resources":[`, `"resources":"none","files":[`},
		"a resource that is a string":             {`[{"uri":"skill://x`, `["skill://x/refunds/a.md",{"uri":"skill://x`},
		"another URI":                             {`{"uri":"skill://x/refunds/SKILL.md","digest`, `{"uri":"skill://x/refunds/a.md","digest`},
		"no digest":                               {`"digest"`, `"sha"`},
		"an upper-case digest":                    {`sha256:ba`, `sha256:BA`},
		"a size that is a string":                 {`"size":3`, `"size":"3"`},
		"no size":                                 {`,"size":3`, ``},
		"a negative size":                         {`"size":3`, `"size":-3`},
		"a fractional size":                       {`"size":3`, `"size":1.5`},
		"a size above 2^53-1":                     {`"size":3`, `"size":9007199254740992`},
		"a size of null":                          {`"size":3`, `"size":null`},
		"a member in different case: Digest":      {`"digest"`, `"Digest"`},
		"a long description":                      {`"description":"d"`, `"description":"` + strings.Repeat("d", 1025) + `"`},
		"a name with two hyphens":                 {refunds, strings.ReplaceAll(refunds, "refunds", "re--funds")},
		"an upper-case name":                      {refunds, strings.ReplaceAll(refunds, "refunds", "Refunds")},
		"metadata with a list":                    {`"x":1.50`, `"metadata":{"triggers":["x"]}`},
		"metadata of null":                        {`"x":1.50`, `"metadata":null`},
		"an empty compatibility":                  {`"x":1.50`, `"compatibility":""`},
		"a compatibility of null":                 {`"x":1.50`, `"compatibility":null`},
		"a member named __proto__":                {`"x":1.50`, `"__proto__":{}`},
		"_meta that is a string":                  {`{"uri"`, `{"_meta":"x","uri"`},
		"_meta of null":                           {`{"uri"`, `{"_meta":null,"uri"`},
		"a member in different case: Frontmatter": {`"frontmatter"`, `"Frontmatter"`},
		"a resource of null":                      {`"resources":[`, `"resources":[null,`},
		"a resource without URI":                  {`"resources":[`, `"resources":[{` + digestAndSize + `},`},
		"a resource with null":                    {`"resources":[`, `"resources":[{"uri":null,` + digestAndSize + `},`},
		"the skill's own file is listed twice":    {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/SKILL.md",` + digestAndSize + `},`},
		"the skill's own file is listed under an encoded URI": {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/SKILL%2Emd",` + digestAndSize + `},`},
		"a file in another skill":                             {`"resources":[`, `"resources":[{"uri":"skill://x/other/a.md",` + digestAndSize + `},`},
		"a file above the skill's folder":                     {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/%2e./a.md",` + digestAndSize + `},`},
		"a file with a slash":                                 {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/a%2fb",` + digestAndSize + `},`},
		"a folder":                                            {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/a/",` + digestAndSize + `},`},
		"a query":                                             {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/a?b",` + digestAndSize + `},`},
		"a fragment":                                          {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/a#b",` + digestAndSize + `},`},
		"an invalid escape":                                   {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/%zz",` + digestAndSize + `},`},
		"a line break":                                        {`"resources":[`, `"resources":[{"uri":"skill://x/refunds/a\nb",` + digestAndSize + `},`},
		"a query before the path":                             {refunds, strings.ReplaceAll(refunds, "skill://x/", "skill://x?y/")},
	} {
		skill := strings.Replace(refunds, change[0], change[1], 1)
		apps.Answer(func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
			if c.Method == "skills/get" {
				return json.RawMessage(`{"skill":` + skill + `}`), nil
			}
			return json.RawMessage(`{"skills":[` + skill + `]}`), nil
		})
		listed, err := n.ListSkills(t.Context(), c, tools.Request{Params: json.RawMessage(`{}`)})
		_, failure := n.GetSkill(t.Context(), c, tools.Request{Params: json.RawMessage(`{"uri":"skill://a/x/refunds/SKILL.md"}`)})
		if whole := what == ""; err != nil || (string(listed) != `{"skills":[]}`) != whole || (failure == nil) != whole {
			t.Errorf("%s: %s, %v; skills/get: %v", what, listed, err, failure)
		}
	}
	for _, answer := range []string{`{}`, `{"skill":null}`, `{"skill":` + strings.ReplaceAll(refunds, "skill://x/", "skill://y/") + `}`, `{"resultType":"task","taskId":"1"}`} {
		apps.Answer(func(context.Context, fakeapps.Call) (json.RawMessage, error) { return json.RawMessage(answer), nil })
		got, err := n.GetSkill(t.Context(), c, tools.Request{Params: json.RawMessage(`{"uri":"skill://a/x/refunds/SKILL.md"}`)})
		if failure, ok := errors.AsType[*rpc.Error](err); !ok || failure.Code != rpc.CodeInternalError {
			t.Errorf("%s: %s, %v", answer, got, err)
		}
	}
}

func TestASkillThatAnAppListsTwiceIsListedOnce(t *testing.T) {
	var log bytes.Buffer
	apps, c := &fakeapps.Apps{}, caller("ws_a", core.RoleMember)
	apps.SetSkilled("a")
	n := tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	changed := strings.Replace(refunds, `"x":1.50`, `"compatibility":"any","metadata":{"x":"y"}`, 1)
	files := strings.Replace(changed, `"resources":[`, `"_meta":{},"resources":[{"uri":"skill://x/refunds/a b.md",`+digestAndSize+`},`, 1)
	first, second := files+","+refunds, strings.ReplaceAll(refunds, "//x/", "//%78/")
	apps.Answer(func(_ context.Context, call fakeapps.Call) (json.RawMessage, error) {
		if strings.Contains(string(call.Params), "cursor") {
			return json.RawMessage(`{"skills":[` + second + `]}`), nil
		}
		return json.RawMessage(`{"skills":[` + first + `],"nextCursor":"2"}`), nil
	})
	for i := range 3 {
		listed, err := n.ListSkills(t.Context(), c, tools.Request{Params: json.RawMessage(`{}`)})
		if want := strings.ReplaceAll(`{"skills":[`+files+`]}`, "skill://", "skill://a/"); err != nil || string(listed) != want {
			t.Errorf("listed: %s, %v, want %s", listed, err, want)
		}
		if i == 1 {
			second = "{}"
		}
		if want := max(1, i); strings.Count(log.String(), "\n") != want || strings.Count(log.String(), "listed more than once") != want {
			t.Errorf("after list %d, the log is %s", i+1, &log)
		}
	}
}

// ownSkills contains the skills of workspaces.
type ownSkills map[string][]core.ServedSkill

func (o ownSkills) Served(workspace, name string) (all []core.ServedSkill) {
	for _, s := range o[workspace] {
		if name == "" || s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

func TestTheWorkspacesOwnSkillsAreListedLikeAnApps(t *testing.T) {
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	setView(t, views, `{"name":"without","default":"allow","exclude":[{"app":"system"}]}`)
	n := tools.New(tools.Options{Apps: &fakeapps.Apps{}, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Views: views, Skills: ownSkills{"ws_a": {
		{Name: "refunds", Frontmatter: json.RawMessage(`{"name":"refunds","description":"d"}`), Files: []core.SkillFile{
			{Path: "SKILL.md", Content: []byte("abc")}, {Path: "references/a b.md", Content: []byte("<€>")}, {Path: "logo.bin", Content: []byte{0xff, 0}},
		}},
	}}})
	c := caller("ws_a", core.RoleMember)
	entry := `{"uri":"skill://system/refunds/SKILL.md","frontmatter":{"name":"refunds","description":"d"},"resources":[` +
		`{"uri":"skill://system/refunds/SKILL.md","digest":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3},` +
		fmt.Sprintf(`{"uri":"skill://system/refunds/references/a%%20b.md","digest":"sha256:%x","size":5},`, sha256.Sum256([]byte("<€>"))) +
		fmt.Sprintf(`{"uri":"skill://system/refunds/logo.bin","digest":"sha256:%x","size":2}]}`, sha256.Sum256([]byte{0xff, 0}))
	about := func(uri string) tools.Request { return tools.Request{Params: json.RawMessage(`{"uri":"` + uri + `"}`)} }
	if listed, err := n.ListSkills(t.Context(), c, tools.Request{Params: json.RawMessage(`{}`)}); err != nil || string(listed) != `{"skills":[`+entry+`]}` {
		t.Errorf("listed: %s, %v\nwant: %s", listed, err, entry)
	}
	if got, err := n.GetSkill(t.Context(), c, about("skill://system/refunds/SKILL.md")); err != nil || string(got) != `{"skill":`+entry+`}` {
		t.Errorf("skills/get: %s, %v", got, err)
	}
	for uri, want := range map[string]string{
		"skill://system/refunds/SKILL.md":            `"mimeType":"text/markdown","text":"abc"`,
		"skill://system/refunds/references/a%20b.md": `"mimeType":"text/markdown","text":"\u003c€\u003e"`,
		"skill://system/refunds/logo.bin":            `"blob":"/wA=","mimeType":"application/octet-stream"`,
	} {
		if got, err := n.ReadResource(t.Context(), c, about(uri)); err != nil || string(got) != `{"contents":[{`+want+`,"uri":"`+uri+`"}]}` {
			t.Errorf("%s: %s, %v\nwant %s", uri, got, err, want)
		}
	}
	other := caller("ws_b", core.RoleMember)
	for _, uri := range []string{"skill://system/refunds/SKILL.md", "skill://system/refunds/nothing.md", "skill://system/refunds", "skill://system/nobody/SKILL.md"} {
		for i, who := range []core.Caller{other, through("without"), c} {
			if i == 2 && strings.HasSuffix(uri, "refunds/SKILL.md") {
				continue
			}
			_, got := n.GetSkill(t.Context(), who, about(uri))
			_, read := n.ReadResource(t.Context(), who, about(uri))
			if core.CodeOf(got) != core.CodeNotFound || core.CodeOf(read) != core.CodeResourceNotFound {
				t.Errorf("%s in %s, view %q: %v, %v", uri, who.Workspace.ID, who.View, got, read)
			}
		}
	}
	for _, who := range []core.Caller{other, through("without")} {
		if listed, err := n.ListSkills(t.Context(), who, tools.Request{Params: json.RawMessage(`{}`)}); err != nil || string(listed) != `{"skills":[]}` {
			t.Errorf("listed in %s, view %q: %s, %v", who.Workspace.ID, who.View, listed, err)
		}
	}
}

func TestTheSkillsOfAnAppWithHeldToolsAreNotShown(t *testing.T) {
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	setView(t, views, `{"name":"without","default":"allow","exclude":[{"tool":"a__t"}]}`)
	n := skilled(views, core.HeldTool{Server: "a", Name: "t"})
	for _, c := range []core.Caller{caller("ws_a", core.RoleMember), through("without")} { // the view hides the tool that is held back
		listed, err := n.ListSkills(t.Context(), c, tools.Request{Params: json.RawMessage(`{}`)})
		if err != nil || strings.Contains(string(listed), "skill://a/") || !strings.Contains(string(listed), "skill://b/") {
			t.Errorf("view %q: listed %s, %v", c.View, listed, err)
		}
		if got, err := n.GetSkill(t.Context(), c, tools.Request{Params: json.RawMessage(`{"uri":"skill://a/x/refunds/SKILL.md"}`)}); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("view %q: skills/get: %s, %v", c.View, got, err)
		}
	}
}
