package chat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func TestACompactionIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &printer{session: &session{cmd: &cobra.Command{}}, out: &out, notes: cli.Styled(&out)}
	e := apiclient.Event{Name: "chat.compacted", Data: []byte(`{"runId":"run_1","text":"They count\n\nships. ` + strings.Repeat("And more. ", 40) + `"}`)}
	if err := p.next(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "a summary instead of its older messages: They count ships. And more.") {
		t.Errorf("%q", text)
	}
}

func TestAToolResultEndsItsLineOnce(t *testing.T) {
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
