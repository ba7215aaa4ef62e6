package app

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestPackagesAndCommandsTakeArguments(t *testing.T) {
	read := func(f installFlags, args ...string) (r *request, err error) {
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, args []string) error {
			r, err = f.request(cmd, args)
			return nil
		}}
		cmd.SetArgs(args)
		if failed := cmd.Execute(); failed != nil {
			t.Fatal(failed)
		}
		return r, err
	}
	for _, f := range []installFlags{{npm: "a"}, {pypi: "a"}, {command: "a"}} {
		if r, err := read(f, "--", "/srv/docs", "--read-only"); err != nil || !slices.Equal(r.Args, []string{"/srv/docs", "--read-only"}) {
			t.Errorf("%+v gives %+v (%v)", f, r, err)
		}
	}
	if r, err := read(installFlags{npm: "a", bin: "b", timeout: time.Minute, set: []string{"dirs=/a", "mode=x", "dirs=/b,c"}}); err != nil || r.Bin != "b" || r.StartTimeout != 60 || r.Env["dirs"] != `["/a","/b,c"]` || r.Env["mode"] != "x" {
		t.Errorf("gives %+v (%v)", r, err)
	}
	for _, f := range []installFlags{{command: "a", bin: "b"}, {npm: "a", timeout: 2 * time.Hour}} {
		if r, err := read(f); err == nil {
			t.Errorf("%+v gives %+v", f, r)
		}
	}
	if r, err := read(installFlags{}, "name", "--", "x"); err == nil {
		t.Errorf("a name should not accept arguments: %+v", r)
	}
}
