package plugintest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Proof is a deliberately wrong plugin and the check that must catch it.
type Proof struct {
	Lie   string // what the plugin does; "" where the check alone names it
	Check string
}

// Proofs compares the section of docs/kits.md about a kit with its checks: for each the sentence that it rests
// on and the wrong plugins that prove it. It fails for a check that no wrong plugin proves, for a proof of no
// check, and where the document says otherwise. With update it writes the section.
func Proofs[S any](t *testing.T, kitName string, checks []kit.Check[S], proofs []Proof, update bool) {
	t.Helper()
	lies := map[string][]string{}
	for _, p := range proofs {
		if !slices.ContainsFunc(checks, func(c kit.Check[S]) bool { return c.Name == p.Check }) {
			t.Errorf("the lie %q names the check %q, which does not exist", p.Lie, p.Check)
		}
		lie := p.Lie
		if lie == "" {
			lie = "breaks this promise alone"
		}
		lies[p.Check] = append(lies[p.Check], lie)
	}
	var section bytes.Buffer
	fmt.Fprintf(&section, "%d checks, %d wrong plugins.\n\n| Sentence of the contract | Check | Wrong plugins that it catches |\n|---|---|---|\n", len(checks), len(proofs))
	for _, c := range checks {
		of := lies[c.Name]
		if len(of) == 0 {
			t.Errorf("no wrong plugin proves the check %q", c.Name)
		}
		slices.Sort(of)
		fmt.Fprintf(&section, "| %s | %s | %s |\n", cell(c.Contract), cell(c.Name), cell(strings.Join(of, "; ")))
	}
	compareSection(t, kitName, section.String(), update)
}

// cell is a text in a table of Markdown.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`).Replace(text)
}

// compareSection compares what stands between the marks of a kit in docs/kits.md with want.
func compareSection(t *testing.T, kitName, want string, update bool) {
	t.Helper()
	file := filepath.Join(root(t), "docs", "kits.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- begin %s -->\n", kitName), fmt.Sprintf("<!-- end %s -->", kitName)
	before, rest, found := strings.Cut(string(raw), begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("docs/kits.md has no section %s: write the lines %q and %q", kitName, begin, end)
	case update:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	case have != want:
		t.Errorf("docs/kits.md is not what the kit %s is: run go test -run Table . -update in its directory", kitName)
	}
}
