package tools

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

func TestHiddenCharactersInDescriptionsAreListedVisiblyWithAWarning(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"a change of direction":              {"{\"name\":\"b\",\"description\":\"a\u202eb\"}", `{"name":"a__b","description":"a[U+202E]b"}`},
		"an escaped change of direction":     {`{"name":"b","description":"a\u2066b"}`, `{"name":"a__b","description":"a[U+2066]b"}`},
		"a tag character":                    {`{"name":"b","title":"a\udb40\udc41"}`, `{"name":"a__b","title":"a[U+E0041]"}`},
		"a control character":                {`{"name":"b","description":"a\u001b[2Jb\u0000"}`, `{"name":"a__b","description":"a[U+001B][2Jb[U+0000]"}`},
		"a description in the schema":        {`{"name":"b","inputSchema":{"properties":{"x":{"description":"\u200b"}}}}`, `{"name":"a__b","inputSchema":{"properties":{"x":{"description":"[U+200B]"}}}}`},
		"line breaks, emoji and accents":     {`{"name":"b","description":"a\n\tb 👩‍👧 é"}`, `{"name":"a__b","description":"a\n\tb 👩‍👧 é"}`},
		"selectors without a symbol":         {"{\"name\":\"b\",\"description\":\"a\U000E0156b\ufe01 \ufe0f\"}", `{"name":"a__b","description":"a[U+E0156]b[U+FE01] [U+FE0F]"}`},
		"more than one selector":             {"{\"name\":\"b\",\"description\":\"❤\ufe0f\U000E0121\"}", "{\"name\":\"a__b\",\"description\":\"❤\ufe0f[U+E0121]\"}"},
		"selectors after symbols":            {"{\"name\":\"b\",\"description\":\"❤\ufe0f 1\ufe0f\u20e3 葛\U000E0100\"}", "{\"name\":\"a__b\",\"description\":\"❤\ufe0f 1\ufe0f\u20e3 葛\U000E0100\"}"},
		"fillers":                            {"{\"name\":\"b\",\"description\":\"\u3164\u115f\u2800\u034f\"}", `{"name":"a__b","description":"[U+3164][U+115F][U+2800][U+034F]"}`},
		"a pattern, which is left unchanged": {`{"name":"b","inputSchema":{"properties":{"x":{"pattern":"[\u200b]"}}}}`, `{"name":"a__b","inputSchema":{"properties":{"x":{"pattern":"[\u200b]"}}}}`},
		"an escaped backslash":               {`{"name":"b","description":"\\u202e"}`, `{"name":"a__b","description":"\\u202e"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			n := New(Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
			lists := n.newMergedLists(&core.Offer{Tools: []core.Tool{{Server: "a", Name: "b", Raw: json.RawMessage(c.raw)}}}, nil)
			got := string(lists.tools[0].Raw)
			if got != c.want {
				t.Errorf("listed as %s, want %s", got, c.want)
			}
			if changed, warned := strings.Contains(c.want, "[U+"), strings.Contains(log.String(), "hidden characters"); changed != warned {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}
