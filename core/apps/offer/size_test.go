package offer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// largeLists returns lists with the given number of entries, each of the given size.
type largeLists struct{ entries, size int }

func (l largeLists) List(_ context.Context, kind core.Kind) ([]json.RawMessage, error) {
	var raws []json.RawMessage
	for i := range l.entries {
		member := "name"
		if kind == core.KindResources {
			member = "uri"
		}
		raws = append(raws, json.RawMessage(fmt.Sprintf(`{"%s":"a://%d","x":"%s"}`, member, i, strings.Repeat("x", l.size))))
	}
	return raws, nil
}

func TestAnAppWhoseListsAreTooLargeDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		lists largeLists
		want  string
	}{
		{largeLists{10, 10}, ""},
		{largeLists{6000, 1}, "the limits are 10000 entries"},
		{largeLists{900, 10 << 10}, "the limits are 10000 entries and 16777216 bytes"},
	} {
		_, err := Reader{Server: "a", Logger: hclog.NewNullLogger()}.ReadAll(t.Context(), c.lists)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v gives %v", c.lists, err)
		}
	}
}
