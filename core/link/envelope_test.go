package link

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{"x":[1]}}`, `{"jsonrpc":"2.0","method":"n","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"id":2,"result":1}`, `{"jsonrpc":"2.0","ID":1,"id":2,"result":1}`,
		`{"jsonrpc":"2.0","\u0069d":1,"result":1}`, `{"jsonrpc":"2.0","id":1.0,"result":null,"error":null}`, `{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"1.0","id":1,"result":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := scanEnvelope(data)
		if err != nil || !utf8.Valid(data) { // a frame is repaired before it is used
			return
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(data, &whole); err != nil {
			t.Fatalf("%q was accepted, encoding/json says %v", data, err)
		}
		var method string
		_ = json.Unmarshal(whole["method"], &method)
		if method != e.method {
			t.Fatalf("%q: method %q, encoding/json says %q", data, e.method, method)
		}
		for key, span := range map[string][]byte{"params": e.params, "result": e.result, "error": e.failure} {
			if span != nil && !bytes.Equal(span, whole[key]) {
				t.Fatalf("%q: %s is %q, encoding/json says %q", data, key, span, whole[key])
			}
		}
		if id, ok := integer(whole["id"]); e.kind == idNumber && (!ok || id != e.number) {
			t.Fatalf("%q: id %d, encoding/json says %q", data, e.number, whole["id"])
		}
	})
}

func TestEnvelopesThatTwoReadersCouldTakeDifferentlyAreRefused(t *testing.T) {
	cases := map[string]string{
		"a method twice":                `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`,
		"an id twice":                   `{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`,
		"a result twice":                `{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`,
		"params twice":                  `{"jsonrpc":"2.0","method":"a","params":{},"params":{}}`,
		"the version twice":             `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}`,
		"a name again, escaped":         `{"jsonrpc":"2.0","id":1,"\u0069d":2,"result":{}}`,
		"a name in another case":        `{"jsonrpc":"2.0","id":1,"Result":{},"result":{}}`,
		"a name in the Kelvin case":     `{"jsonrpc":"2.0","id":1,"reſult":{},"result":{}}`,
		"a method and a result":         `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`,
		"a result and an error":         `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`,
		"neither a method nor a result": `{"jsonrpc":"2.0","id":1}`,
		"no version":                    `{"id":1,"result":{}}`,
		"another version":               `{"jsonrpc":"1.0","id":1,"result":{}}`,
		"an id that is a fraction":      `{"jsonrpc":"2.0","id":1.5,"result":{}}`,
		"an id that is an object":       `{"jsonrpc":"2.0","id":{},"result":{}}`,
		"a request with a null id":      `{"jsonrpc":"2.0","id":null,"method":"a"}`,
		"a response without an id":      `{"jsonrpc":"2.0","result":{}}`,
		"an empty method":               `{"jsonrpc":"2.0","id":1,"method":""}`,
		"something after the message":   `{"jsonrpc":"2.0","id":1,"result":{}}{}`,
		"an array":                      `["jsonrpc"]`,
		"nesting without end":           `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
	}
	for name, frame := range cases {
		t.Run(name, func(t *testing.T) {
			if e, err := scanEnvelope([]byte(frame)); err == nil {
				t.Errorf("accepted as %+v", e)
			}
		})
	}
}

func TestEnvelopesOfCarelessButClearPeersAreAccepted(t *testing.T) {
	cases := map[string]struct {
		frame string
		want  envelope
	}{
		"an error that is null":   {`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, envelope{kind: idNumber, number: 7, result: []byte(`{}`)}},
		"a result that is null":   {`{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1}}`, envelope{kind: idNumber, number: 7, failure: []byte(`{"code":1}`)}},
		"only a null result":      {`{"jsonrpc":"2.0","id":7,"result":null}`, envelope{kind: idNumber, number: 7, result: []byte(`null`)}},
		"an id written as 7.0":    {`{"jsonrpc":"2.0","id":7.0,"result":{}}`, envelope{kind: idNumber, number: 7, result: []byte(`{}`)}},
		"an id that is text":      {`{"jsonrpc":"2.0","id":"a\u0062","method":"m"}`, envelope{kind: idText, text: "ab", method: "m"}},
		"space everywhere":        {" { \"jsonrpc\" : \"2.0\" , \"method\" : \"m\" } \r", envelope{method: "m"}},
		"members nobody knows":    {`{"jsonrpc":"2.0","x":1,"x":2,"method":"m"}`, envelope{method: "m"}},
		"an escaped but own name": {`{"jsonrpc":"2.0","m\u0065thod":"m"}`, envelope{method: "m"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := scanEnvelope([]byte(c.frame))
			if err != nil || got.kind != c.want.kind || got.number != c.want.number || got.text != c.want.text || got.method != c.want.method ||
				!bytes.Equal(got.result, c.want.result) || !bytes.Equal(got.failure, c.want.failure) {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func TestParamsCannotLeaveTheirPlace(t *testing.T) {
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
			if _, err := newRequest("tools/call", []byte(params)); !errors.Is(err, ErrParams) {
				t.Errorf("the error is %v, want ErrParams", err)
			}
		})
	}
	if _, err := newRequest("a\"b", nil); err == nil {
		t.Error("a method with a quote was accepted")
	}
}

func TestParamsAreSentAsTheyAreButForTheTokenAndLineBreaks(t *testing.T) {
	for name, c := range map[string]struct{ params, want string }{
		"without a token":          {`{"name":"x","arguments":{"b":1,"a":1.0}}`, `{"name":"x","arguments":{"b":1,"a":1.0}}`},
		"a number as token":        {`{"_meta":{"progressToken":5,"z":1}}`, `{"_meta":{"progressToken":77,"z":1}}`},
		"a text as token":          {`{"_meta":{"z":1,"progressToken":"a,}"},"n":1}`, `{"_meta":{"z":1,"progressToken":77},"n":1}`},
		"a token in the arguments": {`{"arguments":{"_meta":{"progressToken":1}}}`, `{"arguments":{"_meta":{"progressToken":1}}}`},
		"line breaks":              {"{\r\n\"a\":\n\"x\\ny\"}", `{  "a": "x\ny"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRequest("m", []byte(c.params))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.append(nil, 77)); got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
		})
	}
}
