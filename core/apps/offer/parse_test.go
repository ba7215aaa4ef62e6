package offer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// An app with 10,000 such items that keeps announcing changes would write gigabytes to the server's log.
func TestOnlyTheFirstItemsThatAreLeftOutOrRepairedAreNamed(t *testing.T) {
	for _, raw := range []string{`{}`, `{"name":"t%d"}`} {
		var raws []json.RawMessage
		for i := range 1000 {
			raws = append(raws, json.RawMessage(strings.ReplaceAll(raw, "%d", strconv.Itoa(i))))
		}
		var reports []string
		Reader{Server: "notes", Logger: hclog.NewNullLogger(), Report: func(s string) { reports = append(reports, s) }}.parseTools(raws)
		if n := len(reports); n != maxWarnings+1 || !strings.Contains(reports[n-1], "950 more tools") {
			t.Errorf("%s: %d reports", raw, n)
		}
	}
}

func TestToolsThatCannotBeCalledAreLeftOut(t *testing.T) {
	long := strings.Repeat("x", 128)
	var raws []json.RawMessage
	for _, raw := range []string{
		`{"name":"ok","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"ui":{"resourceUri":"ui://a/b"}},"x-new":[1]}`,
		`{"name":"ok","title":"the second"}`,
		`{"name":"with space"}`, `{"name":""}`, `{"title":"no name"}`, `[]`, `"x"`, `not json`,
		`{"name":"` + long + `"}`, `{"name":"` + long + `x"}`,
		`{"name":"flat","_meta":{"ui/resourceUri":"ui://a/flat"}}`,
		`{"name":"odd","annotations":7,"_meta":[],"inputSchema":null}`,
	} {
		raws = append(raws, json.RawMessage(raw))
	}
	tools := Reader{Server: "notes", Logger: hclog.NewNullLogger()}.parseTools(raws)
	var names []string
	for _, tool := range tools {
		names = append(names, tool.LongName())
	}
	if got := strings.Join(names, " "); got != "notes__ok notes__"+long+" notes__flat notes__odd" {
		t.Errorf("the tools are %s", got)
	}
	if got, want := tools[1].FullName(), "notes__"+long[:48]+"_158ac5b4"; got != want || len(got) != 64 {
		t.Errorf("the long name becomes %s, want %s", got, want)
	}
	if !slices.Equal(tools[0].Raw, raws[0]) || string(tools[0].Schema) != `{"type":"object"}` || !tools[0].ReadOnly || tools[0].ViewURI != "ui://a/b" {
		t.Errorf("the tool was changed: %+v", tools[0])
	}
	if tools[2].ViewURI != "ui://a/flat" {
		t.Errorf("the older key of a view gives %q", tools[2].ViewURI)
	}
}
