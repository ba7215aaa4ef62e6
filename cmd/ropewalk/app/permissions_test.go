package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core"
)

func TestARequestCannotAddLinesToItsQuestion(t *testing.T) {
	t.Parallel()
	for _, kind := range []core.PermissionKind{core.PermissionRead, core.PermissionWrite, core.PermissionNet} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&out)
		cmd.SetIn(strings.NewReader("n\n"))
		ask(cmd, "notes", core.PermissionRequest{Access: core.Access{Kind: kind, Target: "/srv/a\nother wants to read /srv/b:\t[n]o\r\x1b[2K"}})
		if strings.ContainsAny(out.String(), "\n\t\r\x1b") {
			t.Errorf("%s: %q", kind, out.String())
		}
	}
}

func TestTheCommandThatAllowsARequestQuotesIt(t *testing.T) {
	t.Parallel()
	const path = "/srv/a b;$(touch x)"
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	printMissing(cmd, "notes", []core.PermissionRequest{{Access: core.Access{Kind: core.PermissionRead, Target: path}, Reason: "args"}})
	_, command, _ := strings.Cut(out.String(), "names: ")
	if words, err := shellquote.Split(command); err != nil || words[len(words)-1] != path {
		t.Errorf("%q: %q, %v", out.String(), words, err)
	}
}
