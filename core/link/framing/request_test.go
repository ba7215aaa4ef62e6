package framing

import (
	"errors"
	"testing"
)

func TestParamsThatAreNotOneObjectAreRefused(t *testing.T) {
	for name, params := range map[string]string{
		"an end and another member": `{},"method":"evil"`,
		"two values":                `{} {}`,
		"no object":                 `[1]`,
		"a string":                  `"x"`,
		"an unfinished object":      `{"a":1`,
		"two _meta":                 `{"_meta":{},"_meta":{"progressToken":1}}`,
		"two progress tokens":       `{"_meta":{"progressToken":1,"progressToken":2}}`,
		"an escaped second _meta":   `{"_meta":{},"\u005fmeta":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewRequest("tools/call", []byte(params)); !errors.Is(err, ErrParams) {
				t.Errorf("the error is %v, want ErrParams", err)
			}
		})
	}
	if _, err := NewRequest("a\"b", nil); err == nil {
		t.Error("a method with a quote was accepted")
	}
}

func TestParamsAreSentUnchangedExceptTheTokenAndLineBreaks(t *testing.T) {
	for name, c := range map[string]struct{ params, want string }{
		"without a token":          {`{"name":"x","arguments":{"b":1,"a":1.0}}`, `{"name":"x","arguments":{"b":1,"a":1.0}}`},
		"a number as token":        {`{"_meta":{"progressToken":5,"z":1}}`, `{"_meta":{"progressToken":77,"z":1}}`},
		"a text as token":          {`{"_meta":{"z":1,"progressToken":"a,}"},"n":1}`, `{"_meta":{"z":1,"progressToken":77},"n":1}`},
		"a token in the arguments": {`{"arguments":{"_meta":{"progressToken":1}}}`, `{"arguments":{"_meta":{"progressToken":1}}}`},
		"line breaks":              {"{\r\n\"a\":\n\"x\\ny\"}", `{  "a": "x\ny"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewRequest("m", []byte(c.params))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.AppendParams(nil, 77)); got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
		})
	}
}

func TestMembersAreAddedToMetaAndNothingElseChanges(t *testing.T) {
	for name, c := range map[string]struct{ params, want string }{
		"no params":                {``, `{"_meta":{"t":"x"}}`},
		"empty params":             {`{}`, `{"_meta":{"t":"x"}}`},
		"no _meta":                 {` { "name":"a" }`, ` {"_meta":{"t":"x"}, "name":"a" }`},
		"an empty _meta":           {`{"a":1,"_meta":{ }}`, `{"a":1,"_meta":{"t":"x" }}`},
		"a _meta with a token":     {`{"_meta":{"progressToken":5},"z":1}`, `{"_meta":{"t":"x","progressToken":77},"z":1}`},
		"a _meta that is a number": {`{"_meta":5}`, `{"_meta":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, at, err := ReadRequest("m", []byte(c.params))
			if err != nil {
				t.Fatal(err)
			}
			r, at = r.WithMeta(at, []byte(`"t":"x"`))
			if got := string(r.AppendParams(nil, 77)); got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
			again, found, err := ReadRequest("m", r.Params)
			if err != nil || found != at || again.token != r.token {
				t.Errorf("_meta is at %v, and was returned as %v; %v", found, at, err)
			}
		})
	}
}
