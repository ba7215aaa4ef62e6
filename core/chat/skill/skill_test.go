package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/skill"
)

func TestReadingASkill(t *testing.T) {
	s, err := skill.Parse([]byte("\ufeff---\r\nname: a\r\ndescription: D\r\ntype: context\r\npriority: 3\r\nallowed-tools: x__*, y__z\r\nmetadata:\r\n  triggers: [One two]\r\n  keywords:\r\n    - k\r\n---\r\n# Body\r\n---\r\nmore\r\n"))
	if err != nil || s.Name != "a" || s.Type != "context" || s.Priority != 3 || s.Body != "# Body\n---\nmore" ||
		!slices.Equal(s.AllowedTools, []string{"x__*", "y__z"}) || !slices.Equal(s.Triggers, []string{"One two"}) || !slices.Equal(s.Keywords, []string{"k"}) {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"":                              "does not start with front matter",
		"---\nname: a\n":                "does not end",
		"---\nname: [\n---\nx":          "front matter",
		"---\ndescription: x\n---\nx":   "name is missing",
		"---\nname: a\n---\n":           "no text",
		"---\nname: a\ntype: b\n---\nx": "context or skill",
	} {
		if _, err := skill.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

func TestAMessageMaySelectASkill(t *testing.T) {
	all := []skill.Skill{
		{Name: "always", Type: "context", Triggers: []string{"invoice"}},
		{Name: "bills", Type: "skill", Triggers: []string{"Send an INVOICE"}, Keywords: []string{"table", "pay", "due"}},
		{Name: "plans", Type: "skill", Keywords: []string{"plan", "week", "table", "pay"}},
	}
	for message, want := range map[string]string{
		"please send an invoice now":         "bills", // a trigger; case is ignored
		"send an invoice, plan week table":   "bills", // a trigger takes precedence over keywords
		"the plan of my week":                "plans",
		"a plan":                             "", // only one keyword
		"stable prepayment":                  "", // not at the start of a word
		"tables that are payable":            "bills",
		"tables that are payable, next week": "plans", // the most keywords
		"invoice":                            "",
		"":                                   "",
	} {
		got := ""
		if s := skill.Match(all, message); s != nil {
			got = s.Name
		}
		if got != want {
			t.Errorf("%q picks %q, want %q", message, got, want)
		}
	}
}

func TestSkillsAreFoundAndChangedInTheirDirectory(t *testing.T) {
	home, more := t.TempDir(), t.TempDir()
	put := func(content string, path ...string) {
		t.Helper()
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("---\nname: b\npriority: 9\n---\nfrom the home", home, "skills", "b.md")
	put("---\nname: a\n---\nin a folder", home, "skills", "a", "SKILL.md")
	put("no front matter", home, "skills", "broken.md")
	put("not a skill", home, "skills", "README.md")
	put("---\nname: b\n---\nhidden by the home's", more, "b.md")
	put("---\nname: c\npriority: 1\n---\nconfigured", more, "c.md")
	put("---\nname: mine\n---\nof one workspace", home, "workspaces", "ws_x", "skills", "mine.md")
	l := skill.NewLibrary(home, []string{more}, hclog.NewNullLogger())
	names := func(workspace string) string {
		var all []string
		for _, s := range l.Skills(workspace) {
			all = append(all, s.Name+" "+s.Source)
		}
		return strings.Join(all, "; ")
	}
	c := "c " + filepath.Base(more) + "/c.md; "
	if got := names(core.DefaultWorkspaceID); got != c+"b skills/b.md; a skills/a/SKILL.md" {
		t.Errorf("the default workspace has %s", got)
	}
	if got := names("ws_x"); got != c+"b skills/b.md; a skills/a/SKILL.md; mine skills/mine.md" {
		t.Errorf("ws_x has %s", got)
	}
	if _, err := l.Put(t.Context(), "ws_x", skill.Skill{Name: "mine", Type: "skill", Body: "anew", Priority: 0, Keywords: []string{"k"}}); err != nil {
		t.Fatal(err)
	}
	if got := names("ws_x"); !strings.HasPrefix(got, "mine skills/mine.md; ") || strings.Contains(names("ws_y"), "mine") {
		t.Errorf("after writing: %s", got)
	}
	for _, name := range []string{"../b", "", "A", "a/b"} {
		if _, err := l.Put(t.Context(), "ws_x", skill.Skill{Name: name, Type: "skill", Body: "x"}); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("putting a skill called %q returned %v", name, err)
		}
	}
	if err := l.Delete(t.Context(), "ws_x", "b"); core.CodeOf(err) != core.CodeNotFound { // it is in the home's folder
		t.Errorf("deleting another's returned %v", err)
	}
	if err := l.Delete(t.Context(), "ws_x", "mine"); err != nil || strings.Contains(names("ws_x"), "mine") {
		t.Errorf("deleting returned %v", err)
	}
}

func TestAWorkspaceCanHaveALimitedNumberOfSkills(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "workspaces", "ws_x", "skills")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("s%d.md", i)), fmt.Appendf(nil, "---\nname: s%d\n---\nx", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := skill.NewLibrary(home, nil, hclog.NewNullLogger())
	put := func(workspace, name string) error {
		_, err := l.Put(t.Context(), workspace, skill.Skill{Name: name, Type: "skill", Body: "y"})
		return err
	}
	if err := put("ws_x", "one-more"); core.CodeOf(err) != core.CodeLimitReached {
		t.Errorf("one more: %v", err)
	}
	for _, c := range [][2]string{{"ws_x", "s7"}, {"ws_y", "one-more"}} {
		if err := put(c[0], c[1]); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}
