package tools

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

func TestEachRevisionListsToolsAsItDefinesThem(t *testing.T) {
	const input = `{"name":"a__b","inputSchema":{"type":"object"}`
	n := New(Options{Logger: hclog.NewNullLogger()})
	for definition, want := range map[string][2]string{ // the definition without sessions and with sessions; the second is "" if both are the same
		`}`: {`}`},
		`,"outputSchema":{"type":"object","properties":{"x":{"pattern":"(?=x)"}}}}`:                  {`,"outputSchema":{"type":"object","properties":{"x":{"pattern":"(?=x)"}}}}`},
		`,"outputSchema":{"type":"array"}}`:                                                          {`,"outputSchema":{"type":"array"}}`, `}`},
		`,"outputSchema":{"type":["object","null"]}}`:                                                {`,"outputSchema":{"type":["object","null"]}}`, `,"outputSchema":{"type":"object"}}`},
		`,"outputSchema":{"properties":{"x":true}}}`:                                                 {`,"outputSchema":{"properties":{"x":true}}}`, `,"outputSchema":{"properties":{"x":{}},"type":"object"}}`},
		`,"outputSchema":{"type":"object","$ref":"#/$defs/none"}}`:                                   {`}`},
		`,"outputSchema":{"type":"object","properties":{"x":{"type":"int"}}}}`:                       {`}`},
		`,"outputSchema":{"type":"object","properties":{"x":{"$ref":"https://schemas.example/x"}}}}`: {`}`},
	} {
		tool := core.Tool{Server: "a", Name: "b", Raw: json.RawMessage(`{"name":"b"}`), Listed: json.RawMessage(`{"name":"b","inputSchema":{"type":"object"}` + definition)}
		listed := n.newMergedLists(&core.Offer{Tools: []core.Tool{tool}}, nil).tools[0]
		if want[1] == "" {
			want[1] = want[0]
		}
		if got := string(listed.RawFor(From{Stateless: true})); got != input+want[0] {
			t.Errorf("%s is listed without sessions as %s", definition, got)
		}
		if got := string(listed.RawFor(From{})); got != input+want[1] {
			t.Errorf("%s is listed with sessions as %s", definition, got)
		}
	}
}

func TestPropertiesWhoseSchemaIsABooleanAreListedAsObjectsInSessions(t *testing.T) {
	got := sessionForm(json.RawMessage(`{"inputSchema":{"type":"object","properties":{"x":true,"y":false,"z":{"minimum":1.0}}},"name":"b"}`))
	if want := `{"inputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}},"z":{"minimum":1.0}}},"name":"b"}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}
