package app

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
)

func TestAPathInAFlagIsCompletedExceptAnEmptyOne(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f := accessFlags{read: []string{"", "~/notes", "~", "docs/../x", "/srv/"}, net: []string{""}}
	var got []string
	for _, a := range f.all(true) {
		got = append(got, a.Target)
	}
	if want := []string{"", filepath.Join(home, "notes"), home, filepath.Join(here, "x"), "/srv", ""}; !slices.Equal(got, want) {
		t.Errorf("the paths are %q, want %q", got, want)
	}
	if away := f.all(false); away[1].Target != "~/notes" {
		t.Errorf("for a server elsewhere: %v", away)
	}
}

func TestAnImportSaysWhichDefaultsItUses(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	s := imported{Name: "x", Status: "planned", Inputs: []pasted.Input{
		{Name: "KEY", Default: "<KEY>", Fields: []string{"env.API_KEY"}}, {Name: "REGION", Default: "eu", Fields: []string{"args[0]"}}, {Name: "TOKEN", Fields: []string{"args[1]"}},
	}, ToolFilter: &core.ToolFilter{Exclude: []string{"delete"}}}
	s.explain(cmd, &importFlags{set: []string{"REGION=us", "TOKEN"}})
	if got := out.String(); !strings.Contains(got, "x: env.API_KEY is <KEY>, unless --set KEY=VALUE gives another value\n") || strings.Contains(got, "REGION") || strings.Contains(got, "TOKEN") {
		t.Errorf("it prints %s", got)
	}
}
