package rpc

import (
	"errors"
	"testing"
)

func TestParamsThatAreNotOneObjectAreRefused(t *testing.T) {
	for name, params := range map[string]string{
		"an early end and another member": `{},"method":"evil"`,
		"two values":                      `{} {}`,
		"an array":                        `[1]`,
		"a string":                        `"x"`,
		"an unfinished object":            `{"a":1`,
		"two _meta":                       `{"_meta":{},"_meta":{"progressToken":1}}`,
		"two progress tokens":             `{"_meta":{"progressToken":1,"progressToken":2}}`,
		"an escaped second _meta":         `{"_meta":{},"\u005fmeta":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := ReadRequest("tools/call", []byte(params)); !errors.Is(err, ErrParams) {
				t.Errorf("the error is %v, want ErrParams", err)
			}
		})
	}
	if _, _, err := ReadRequest("a\"b", nil); err == nil {
		t.Error("a method with a quote was accepted")
	}
}

func TestParamsAreSentUnchangedExceptTheTokenAndLineBreaks(t *testing.T) {
	for name, c := range map[string]struct{ params, want string }{
		"without a token":          {`{"name":"x","arguments":{"b":1,"a":1.0}}`, `{"name":"x","arguments":{"b":1,"a":1.0}}`},
		"a number as the token":    {`{"_meta":{"progressToken":5,"z":1}}`, `{"_meta":{"progressToken":77,"z":1}}`},
		"a string as the token":    {`{"_meta":{"z":1,"progressToken":"a,}"},"n":1}`, `{"_meta":{"z":1,"progressToken":77},"n":1}`},
		"a token in the arguments": {`{"arguments":{"_meta":{"progressToken":1}}}`, `{"arguments":{"_meta":{"progressToken":1}}}`},
		"line breaks":              {"{\r\n\"a\":\n\"x\\ny\"}", `{  "a": "x\ny"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := ReadRequest("m", []byte(c.params))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.AppendParams(nil, 77)); got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
		})
	}
}

func TestMembersAreAddedToMetaWithoutOtherChanges(t *testing.T) {
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
			r.AddMeta(at, []byte(`"t":"x"`))
			if got := string(r.AppendParams(nil, 77)); got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
			message := `{"jsonrpc":"2.0","id":77,"method":"m","params":` + c.want + "}\n"
			if got := string(r.AppendMessage(nil, 77)); got != message || len(got) > r.Size() {
				t.Errorf("the message is %s, want %s; its size is given as %d", got, message, r.Size())
			}
		})
	}
}
