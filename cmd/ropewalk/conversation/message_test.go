package conversation

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestAMessageSaysWhyItEnded(t *testing.T) {
	for why, want := range map[string]string{
		"":                 "✗ max iterations\n",
		"It is the limit.": "✗ max iterations: It is the limit.\n",
	} {
		var m message
		m.Metadata.StopReason, m.Metadata.StopMessage = "max_iterations", why
		var out strings.Builder
		m.print(cli.NewOutput(&out))
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	}
}
