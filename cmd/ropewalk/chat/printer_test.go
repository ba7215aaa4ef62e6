package chat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestTheResultOfAToolEndsItsLineOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &printer{session: &session{cmd: &cobra.Command{}}, out: &out, notes: cli.Styled(&out)}
	if err := p.toolDone(toolDone{Name: "a__t", OK: true, Output: "done\n"}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("%q", text)
	}
}
