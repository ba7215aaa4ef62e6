package tools

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

func TestASchemaThatIsTooComplexIsReplacedWhenItIsListed(t *testing.T) {
	reference := `{"$ref":"#/$defs/%d"}`
	text := `{"allOf":[{"$ref":"#/$defs/0"}],"$defs":{`
	for i := range 24 {
		next := fmt.Sprintf(reference, i+1)
		text += fmt.Sprintf(`"%d":{"allOf":[%s,%s]},`, i, next, next)
	}
	text += `"24":{"required":["missing"]}}}`
	n := New(Options{Logger: hclog.NewNullLogger()})
	tool := core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(text), Raw: json.RawMessage(`{"name":"b","inputSchema":` + text + `}`)}
	lists := n.newMergedLists(&core.Offer{Tools: []core.Tool{tool}}, nil)
	if len(lists.tools) != 1 || string(lists.tools[0].Raw) != `{"name":"a__b","inputSchema":{"type":"object"}}` {
		t.Errorf("listed as %.200s", lists.tools[0].Raw)
	}
}
