package app

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestTheFieldsOfAnAppAreShownOneALine(t *testing.T) {
	t.Parallel()
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(`{"version": "1.0.0", "env": ["KEY", "OTHER"], "userConfig": {"apiKey": "[set]"}, "lastError": null, "ui": [],
		"signature": {"signer": "Example", "trusted": false}, "memoryBytes": 8052736, "name": "notes", "toolCount": 4,
		"lastOutput": ["a", "b"], "description": "", "source": {"ref": "/x", "deep": {"er": [{"n": 1}]}}}`), &fields)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printFields(cli.NewOutput(&out), fields); err != nil {
		t.Fatal(err)
	}
	want := `name                notes
version             1.0.0
last output         a
                    b
memory              7.7 MiB
tool count          4
env                 KEY
                    OTHER
signature signer    Example
signature trusted   false
source deep er      {"n": 1}
source ref          /x
user config apiKey  [set]
`
	if out.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), want)
	}
}
