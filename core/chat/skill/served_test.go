package skill_test

import (
	"bytes"
	"errors"
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

func TestSkillsAreServedWithAllTheirFiles(t *testing.T) {
	home := t.TempDir()
	put := func(content string, path ...string) {
		t.Helper()
		file := filepath.Join(append([]string{home, "skills"}, path...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const refunds = "---\r\nname: refunds\r\ndescription: Pays back\r\nextra: {since: 2026-1-2, versions: [1.0, x], 3: {<<: 2026-01-02 03:04:05}}\r\n---\r\nRead it.\r\n"
	put(refunds, "refunds", "SKILL.md")
	put("€", "refunds", "references", "a b.md")
	put("secret", "refunds", ".git", "config")
	put("secret", "refunds", ".env")
	put("elsewhere", "outside", "private.txt")
	put("---\nname: daily\ndescription: |\n  Reports\n---\nReport.", "daily-file.md")
	put("---\nname: undescribed\n---\nx", "undescribed.md")
	put("---\nname: Not A Name\ndescription: d\n---\nx", "named.md")
	for i, front := range []string{
		"name: 123\ndescription: d", "name: true\ndescription: d", "name: ' padded '\ndescription: d", "name: a--b\ndescription: d", "name: a-\ndescription: d",
		"name: " + strings.Repeat("a", 65) + "\ndescription: d", "name: number\ndescription: 5", "name: blank\ndescription: ' '",
		"name: long\ndescription: " + strings.Repeat("x", 1025), "name: infinite\ndescription: d\nx: .inf",
		"name: lists\ndescription: d\nmetadata: {triggers: [a, b]}", "name: number\ndescription: d\nmetadata: {version: 1.0}",
		"name: no-map\ndescription: d\nmetadata: x", "name: empty-map\ndescription: d\nmetadata:", "name: no-text\ndescription: d\ncompatibility: 1",
		"name: no-systems\ndescription: d\ncompatibility: ''", "name: systems\ndescription: d\ncompatibility: " + strings.Repeat("x", 501),
		"name: prototype\ndescription: d\n__proto__: {}",
	} {
		put("---\n"+front+"\n---\nx", fmt.Sprintf("invalid-%d.md", i))
	}
	put("---\nname: large\ndescription: d\n---\nx", "large", "SKILL.md")
	put(strings.Repeat("x", 4<<20), "large", "data")
	put("---\nname: many\ndescription: d\n---\nx", "many", "SKILL.md")
	for i := range 200 {
		put("", "many", fmt.Sprint(i))
	}
	for link, target := range map[string]string{"link.txt": "../outside/private.txt", "folder": "../outside"} {
		if err := os.Symlink(target, filepath.Join(home, "skills", "refunds", link)); err != nil {
			t.Fatal(err)
		}
	}
	l := skill.NewLibrary(home, nil, hclog.NewNullLogger())
	served := func(workspace, name string) (all []string) {
		for _, s := range l.Served(workspace, name) {
			line := s.Name + " " + string(s.Frontmatter)
			for _, f := range s.Files {
				line += fmt.Sprintf(" %s:%q", f.Path, f.Content)
			}
			all = append(all, line)
		}
		return all
	}
	daily := `daily {"description":"Reports\n","name":"daily"} SKILL.md:"---\nname: daily\ndescription: |\n  Reports\n---\nReport."`
	want := []string{daily, `refunds {"description":"Pays back","extra":{"3":{"\u003c\u003c":"2026-01-02 03:04:05"},"since":"2026-1-2","versions":[1,"x"]},"name":"refunds"} SKILL.md:` + fmt.Sprintf("%q", refunds) + ` references/a b.md:"€"`}
	if got := served(core.DefaultWorkspaceID, ""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("served:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := served("ws_x", "daily"); len(got) != 1 || got[0] != daily {
		t.Errorf("by name: %s", got)
	}
}

// Clients compare the front matter with their own reading of the file.
func TestFrontMatterIsReadAsYAML12(t *testing.T) {
	home := t.TempDir()
	l := skill.NewLibrary(home, nil, hclog.NewNullLogger())
	for text, want := range map[string]string{
		"1_000": `"1_000"`, "017": "17", "-017": "-17", "+017": "17", "08": "8", "00": "0", "0": "0", "00.5e1": "5", "1_0.5": `"1_0.5"`,
		"0b11": `"0b11"`, "-0b11": `"-0b11"`, "0o17": "15", "-0o17": `"-0o17"`, "0O17": `"0O17"`, "0xfF": "255", "0XfF": `"0XfF"`, "-0xfF": `"-0xfF"`,
		"1.": "1", ".5": "0.5", "1e3": "1000", "12345678901234567890": "12345678901234567890", "yes": `"yes"`, "True": "true", "~": "null",
		"'017'": `"017"`, "[017, 1_0]": `[17,"1_0"]`, "|\n  017": `"017\n"`, "2026-01-02": `"2026-01-02"`, "!!int 017": "15",
	} {
		file := filepath.Join(home, "skills", "a.md")
		content := "---\nname: a\ndescription: d\nx: " + text + "\n---\nx"
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.RemoveAll(file), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
		served := l.Served(core.DefaultWorkspaceID, "")
		if want = `{"description":"d","name":"a","x":` + want + `}`; len(served) != 1 || string(served[0].Frontmatter) != want {
			t.Errorf("%s: %+v, want %s", text, served, want)
		}
	}
}

func TestASkillIsWrittenSoThatItIsServed(t *testing.T) {
	var log bytes.Buffer
	l := skill.NewLibrary(t.TempDir(), nil, hclog.New(&hclog.LoggerOptions{Output: &log}))
	put := func(triggers ...string) string {
		t.Helper()
		s := skill.Skill{Name: "a", Description: "d", Type: "skill", Body: "x", Triggers: triggers, Keywords: []string{"true", "017"}}
		if kept, err := l.Put(t.Context(), "ws_x", s); err != nil || !slices.Equal(kept.Triggers, triggers) || !slices.Equal(kept.Keywords, s.Keywords) {
			t.Fatalf("it became %+v, %v", kept, err)
		}
		if served := l.Served("ws_x", "a"); len(served) == 1 {
			return string(served[0].Frontmatter)
		}
		return ""
	}
	want := `{"description":"d","metadata":{"keywords":"true, 017","triggers":"one two, three"},"name":"a","priority":0,"type":"skill"}`
	if got := put("one two", "three"); got != want || log.Len() > 0 {
		t.Errorf("served: %s, want %s; logged: %s", got, want, &log)
	}
	const reason = "metadata.triggers: must be text"
	for range 2 {
		if got := put("one, two", "three"); got != "" || strings.Count(log.String(), reason) != 1 {
			t.Errorf("served with a comma: %s; logged: %s", got, &log)
		}
	}
	put("one")
	if got := put("one, two"); got != "" || strings.Count(log.String(), reason) != 2 {
		t.Errorf("served with a comma again: %s; logged: %s", got, &log)
	}
}
