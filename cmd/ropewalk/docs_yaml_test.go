package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

// TestEveryConfigurationInTheDocumentationIsValid loads the blocks marked yaml. It skips blocks after the
// comment <!-- not a configuration -->.
func TestEveryConfigurationInTheDocumentationIsValid(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")
	variable := regexp.MustCompile(`\$\{env:(\w+)\}`)
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllSubmatchIndex(text, -1) {
			if strings.HasSuffix(strings.TrimSpace(string(text[:m[0]])), "<!-- not a configuration -->") {
				continue
			}
			home := t.TempDir()
			indent, block := string(text[m[2]:m[3]]), string(text[m[4]:m[5]])
			block = strings.ReplaceAll("\n"+block, "\n"+indent, "\n")[1:]
			environment := config.Environment{"SERVICE_API_KEY": "a-key-of-sixteen-bytes"}
			for _, v := range variable.FindAllStringSubmatch(block, -1) {
				environment[v[1]] = "value"
			}
			block = strings.ReplaceAll(block, "<base URL>", "https://tools.example.com")
			path := filepath.Join(home, "ropewalk.yaml")
			if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			checked++
			if _, err := config.Load(config.Options{Path: path, Home: home, Environment: environment, Adapters: adapterSchemas()}); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(page), err, block)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d configurations were found", checked)
	}
}

func TestTroubleshootingExplainsEveryErrorCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../core/error.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 30 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(string(page), "`"+c[1]+"`") {
			t.Errorf("docs/troubleshooting.md does not explain %s", c[1])
		}
	}
}
