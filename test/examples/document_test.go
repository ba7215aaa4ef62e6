package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const document = "../../docs/plugins.md"

// read is the document, and its blocks of a language.
func read(t *testing.T, language string) (text string, blocks []string) {
	t.Helper()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(raw, -1) {
		blocks = append(blocks, string(found[1]))
	}
	return string(raw), blocks
}

func TestThePluginInTheDocumentKeepsTheContract(t *testing.T) {
	t.Parallel()
	_, programs := read(t, "python")
	_, commands := read(t, "sh")
	dir := t.TempDir()
	venv := filepath.Join(filepath.Dir(authPython(t)), ".venv") // has what the document installs
	if err := os.Symlink(venv, filepath.Join(dir, ".venv")); err != nil {
		t.Fatal(err)
	}
	var launcher, install string
	for _, block := range commands {
		if strings.HasPrefix(block, "#!/bin/sh") {
			launcher = block
		}
		if _, after, ok := strings.Cut(block, "ropewalk plugin proto\n"); ok {
			install = "ropewalk plugin proto\n" + after // the contracts come from the executable, no checkout is used
		}
	}
	if len(programs) != 1 || launcher == "" || install == "" {
		t.Fatalf("the document has %d programs, the launcher %q and the commands %q", len(programs), launcher, install)
	}
	for name, text := range map[string]string{"plugin.py": programs[0], "sessionstore-demo": launcher} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.CommandContext(t.Context(), "sh", "-e", "-c", install)
	sh.Dir, sh.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"))
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, out)
	}
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "test", filepath.Join(dir, "sessionstore-demo"), "--effort", "quick").CombinedOutput()
	wantPassed(t, string(out), err)
}

func TestEveryLinkOfTheDocumentLeadsSomewhere(t *testing.T) {
	text, _ := read(t, "sh")
	headings := map[string]bool{}
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			headings[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")] = true
		}
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1)
	if len(links) == 0 {
		t.Fatal("the document has no links")
	}
	for _, link := range links {
		if anchor, within := strings.CutPrefix(link[1], "#"); within {
			if !headings[anchor] {
				t.Errorf("there is no heading %q", anchor)
			}
		} else if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
			t.Errorf("%s leads nowhere", link[1])
		}
	}
}
