package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const document = "../../docs/plugins.md"

// read returns the text of the document and its code blocks in a language.
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

func TestThePluginsInTheDocumentPassTheirKit(t *testing.T) {
	_, commands := read(t, "sh")
	for language, build := range map[string]string{"python": "./build\n", "java": "mvn -q package\n"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			block := ""
			for _, one := range commands {
				if strings.Contains(one, "--lang "+language) {
					block = one
				}
			}
			if !strings.Contains(block, build) {
				t.Fatalf("the document has the commands %q, without %q", block, build)
			}
			if language == "java" {
				needJava(t)
			} else {
				block = withPackages(t, block)
			}
			// A JVM takes longer than the usual 10 s to start on a busy machine.
			block = strings.ReplaceAll(block, "plugin test ./demo", "plugin test ./demo --start-timeout 3m")
			out, err := shell(t, t.TempDir(), block)
			wantPassed(t, out, err)
		})
	}
}

func TestEveryLinkInTheDocumentResolves(t *testing.T) {
	text, _ := read(t, "sh")
	headings := map[string]bool{}
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			headings[strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(strings.TrimSpace(title)))] = true
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
