package skill_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	const refunds = "---\r\nname: refunds\r\ndescription: Pays back\r\nmetadata: {since: 2026-1-2, versions: [1.0, x], 3: {<<: 2026-01-02 03:04:05}}\r\n---\r\nRead it.\r\n"
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
	want := []string{daily, `refunds {"description":"Pays back","metadata":{"3":{"\u003c\u003c":"2026-01-02 03:04:05"},"since":"2026-1-2","versions":[1,"x"]},"name":"refunds"} SKILL.md:` + fmt.Sprintf("%q", refunds) + ` references/a b.md:"€"`}
	if got := served(core.DefaultWorkspaceID, ""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("served:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := served("ws_x", "daily"); len(got) != 1 || got[0] != daily {
		t.Errorf("by name: %s", got)
	}
}
