package prose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// skipped are files that are not written by hand (generated code, recorded data, dependencies), and
// migrations with the names of tables before 00011_plain_names.sql, which must stay as they were applied.
var skipped = regexp.MustCompile(`^core/store/migrations/000(0\d|1[01])_|\.pb\.go$|(^|/)testdata/|(^|/)node_modules/|/dist/|(^|/)go\.(mod|sum)$|package-lock\.json$|^LICENSE$|^internal/prose/`)

// prose are the files whose words are checked.
var prose = regexp.MustCompile(`\.(go|md|ya?ml|proto|sql|sh|tsx?|css|html|json|toml|service|tpl|py|rs|txt)$|(^|/)(Makefile|Dockerfile[^/]*|run|install-deps)$`)

func TestTheRepositoryUsesPlainWords(t *testing.T) {
	root := filepath.Join("..", "..")
	rules := compiledRules(t)
	for _, file := range tracked(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			if os.IsNotExist(err) { // deleted, not yet committed
				continue
			}
			t.Fatal(err)
		}
		for _, f := range check(rules, file, text) {
			t.Errorf("%s", f)
		}
	}
}

// tracked returns the files of the repository, relative to its root.
func tracked(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git working tree: %v", err)
	}
	var files []string
	for file := range strings.SplitSeq(string(out), "\x00") {
		if prose.MatchString(file) && !skipped.MatchString(file) {
			files = append(files, file)
		}
	}
	if len(files) < 100 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

func compiledRules(t *testing.T) []compiled {
	t.Helper()
	rules, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestEachRuleFindsItsWordAndSparesTheException(t *testing.T) {
	rules := compiledRules(t)
	for text, want := range map[string]bool{
		"type yard struct{}":                         true,
		"HTTPYard, two yards":                        true,
		"// NOBODY KNOWS":                            true,
		"func newSessionLedger() *sessionLedger":     true,
		"// parkedCalls wait.":                       true,
		"// as spec 4.10 rule 3 says":                true,
		"// (contract part 7)":                       true,
		"// Hardening row 20":                        true,
		"// room for one more":                       false,
		"// as the MCP specification says":           false,
		"err := filepath.WalkDir(dir, visit)":        false,
		"// calls in flight":                         false,
		"inFlight int":                               false,
		"// docs/api.md 4.3 and docs/security.md 12": false,
		"the backyard of Modernc and moderncsqlite":  false,
		"import _ \"modernc.org/sqlite\"":            false,
		"// The plugin contract, version 1.":         false,
	} {
		if got := len(check(rules, "x.go", []byte(text))) > 0; got != want {
			t.Errorf("%q: found %t, want %t", text, got, want)
		}
	}
}
