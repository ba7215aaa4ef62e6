package offer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestAnInvalidDefinitionIsRepairedAndItsOriginalIsKept(t *testing.T) {
	const input = `"inputSchema":{"type":"object"}`
	for wrong, want := range map[string]string{
		`{"name":"a"}`:                         `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":null}`:      `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":[ ]}`:       `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":true}`:      `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":{}}`:        `{"name":"a",` + input + `}`,
		`{"inputSchema":{"$id":1},"name":"a"}`: `{"inputSchema":{"$id":1,"type":"object"},"name":"a"}`,

		`{"name":"a","inputSchema":{"type":null}}`:                                                      `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":{"type":["null","object"]}}`:                                         `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":{"type":"object","properties":[]}}`:                                  `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":[],"y":{"type":"int"},"z":"s"}}}`: `{"name":"a","inputSchema":{"type":"object","properties":{"x":{},"y":{"type":"int"},"z":{}}}}`,
		`{"name":"a","inputSchema":{"type":"object","required":true}}`:                                  `{"name":"a",` + input + `}`,
		`{"name":"a","inputSchema":{"type":"object","required":["x",1,null]}}`:                          `{"name":"a","inputSchema":{"type":"object","required":["x"]}}`,
		`{"name":"a","inputSchema":{"type":"object","$schema":7,"maximum":12345678901234567891}}`:       `{"name":"a","inputSchema":{"type":"object","maximum":12345678901234567891}}`,

		`{"name":"a","description":null,` + input + `}`:                                                    `{"name":"a",` + input + `}`,
		`{"name":"a","description":["x"],"title":7,` + input + `}`:                                         `{"name":"a",` + input + `}`,
		`{"name":"a",` + input + `,"outputSchema":null}`:                                                   `{"name":"a",` + input + `}`,
		`{"name":"a",` + input + `,"outputSchema":[]}`:                                                     `{"name":"a",` + input + `}`,
		`{"name":"a",` + input + `,"outputSchema":{"type":"object","required":{}}}`:                        `{"name":"a",` + input + `,"outputSchema":{"type":"object"}}`,
		`{"name":"a",` + input + `,"annotations":[]}`:                                                      `{"name":"a",` + input + `}`,
		`{"name":"a",` + input + `,"annotations":{"title":null,"readOnlyHint":"yes","x":1}}`:               `{"name":"a",` + input + `,"annotations":{"x":1}}`,
		`{"name":"a",` + input + `,"execution":{"taskSupport":"never"}}`:                                   `{"name":"a",` + input + `,"execution":{}}`,
		`{"name":"a",` + input + `,"_meta":[]}`:                                                            `{"name":"a",` + input + `}`,
		`{"name":"a",` + input + `,"icons":[{"src":"i"},{"mimeType":"x"},{"src":"j","sizes":"9x9"},null]}`: `{"name":"a",` + input + `,"icons":[{"src":"i"}]}`,
		`{"name":"a",` + input + `,"icons":{}}`:                                                            `{"name":"a",` + input + `}`,
	} {
		var reported []string
		r := Reader{Server: "notes", Logger: hclog.NewNullLogger(), Report: func(sentence string) { reported = append(reported, sentence) }}
		tools := r.parseTools([]json.RawMessage{json.RawMessage(wrong)})
		if len(tools) != 1 {
			t.Errorf("%s was left out: %q", wrong, reported)
			continue
		}
		if string(tools[0].Listed) != want || string(tools[0].Raw) != wrong {
			t.Errorf("%s is listed as\n%s, kept as\n%s; want\n%s", wrong, tools[0].Listed, tools[0].Raw, want)
		}
		if len(reported) != 1 || !strings.Contains(reported[0], `corrected the tool "a": `) {
			t.Errorf("%s: reported %q", wrong, reported)
		}
	}
}

func TestAValidDefinitionPassesByteForByte(t *testing.T) {
	for _, valid := range []string{
		`{"name":"a","inputSchema":{"type":"object"}}`,
		` { "name" : "a" , "inputSchema" : { "properties" : { "x" : true , "y":{"maximum":1.0e400} } , "type" : "object", "required" : [ ] } , "x-new":[null] }`,
		`{"name":"a","title":"","description":"","inputSchema":{"type":"object","$schema":"s","$ref":"#/nothing","additionalProperties":false},"outputSchema":{"type":"array","items":{}},` +
			`"annotations":{"title":"t","readOnlyHint":false,"other":null},"execution":{"taskSupport":"optional"},"_meta":{"x":null},"icons":[{"src":"i","sizes":["any"],"theme":"dark"}]}`,
	} {
		var reported []string
		r := Reader{Logger: hclog.NewNullLogger(), Report: func(sentence string) { reported = append(reported, sentence) }}
		tools := r.parseTools([]json.RawMessage{json.RawMessage(valid)})
		if len(tools) != 1 || string(tools[0].Listed) != valid || len(reported) > 0 {
			t.Errorf("%s became %+v; reported %q", valid, tools, reported)
		}
	}
}

func TestAnIrreparableDefinitionAffectsOnlyItsTool(t *testing.T) {
	var raws []json.RawMessage
	for _, schema := range []string{`"{}"`, `7`, `false`, `[{"type":"object"}]`, `{"type":"string"}`, `{"type":["null","string"]}`, `{"type":{}}`} {
		raws = append(raws, json.RawMessage(`{"name":"wrong`+string(rune('a'+len(raws)))+`","inputSchema":`+schema+`}`))
	}
	raws = append(raws, json.RawMessage(`{"name":"good","inputSchema":{"type":"object"}}`))
	var reported []string
	r := Reader{Logger: hclog.NewNullLogger(), Report: func(sentence string) { reported = append(reported, sentence) }}
	tools := r.parseTools(raws)
	if len(tools) != 1 || tools[0].Name != "good" {
		t.Errorf("listed %+v", tools)
	}
	if len(reported) != len(raws)-1 || slices.ContainsFunc(reported, func(s string) bool {
		return !strings.HasPrefix(s, "left out the tool ") || !strings.Contains(s, ": its inputSchema")
	}) {
		t.Errorf("reported %q", reported)
	}
}

func TestTheWarningAboutADefinitionNamesAFewOfItsFaults(t *testing.T) {
	var reported string
	r := Reader{Logger: hclog.NewNullLogger(), Report: func(sentence string) { reported = sentence }}
	r.parseTools([]json.RawMessage{json.RawMessage(`{"name":"a","title":1,"description":null,"_meta":[],"icons":1,"execution":1,"annotations":1,"inputSchema":[]}`)})
	if !strings.HasPrefix(reported, `corrected the tool "a": title is a number, but must be a string; description is null`) || !strings.HasSuffix(reported, "; and 2 more") {
		t.Errorf("reported %q", reported)
	}
}
