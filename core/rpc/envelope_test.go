package rpc

import (
	"bytes"
	"encoding/json"
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
		e, err := Scan(data)
		if err != nil || !utf8.Valid(data) { // a frame is repaired before it is used
			return
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(data, &whole); err != nil {
			t.Fatalf("%q was accepted, encoding/json says %v", data, err)
		}
		var method string
		_ = json.Unmarshal(whole["method"], &method)
		if method != e.Method {
			t.Fatalf("%q: method %q, encoding/json says %q", data, e.Method, method)
		}
		for key, span := range map[string][]byte{"params": e.Params, "result": e.Result, "error": e.Error} {
			if span != nil && !bytes.Equal(span, whole[key]) {
				t.Fatalf("%q: %s is %q, encoding/json says %q", data, key, span, whole[key])
			}
		}
		if id, ok := Integer(whole["id"]); e.IDKind == IDNumber && (!ok || id != e.Number) {
			t.Fatalf("%q: id %d, encoding/json says %q", data, e.Number, whole["id"])
		}
	})
}

func TestAmbiguousMessagesAreRefused(t *testing.T) {
	cases := map[string]string{
		"two methods":                   `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`,
		"two ids":                       `{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`,
		"two results":                   `{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`,
		"two params":                    `{"jsonrpc":"2.0","method":"a","params":{},"params":{}}`,
		"two versions":                  `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}`,
		"a repeated name, escaped":      `{"jsonrpc":"2.0","id":1,"\u0069d":2,"result":{}}`,
		"a name in a different case":    `{"jsonrpc":"2.0","id":1,"Result":{},"result":{}}`,
		"a name with a long s":          `{"jsonrpc":"2.0","id":1,"reſult":{},"result":{}}`,
		"a method and a result":         `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`,
		"a result and an error":         `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`,
		"neither a method nor a result": `{"jsonrpc":"2.0","id":1}`,
		"no version":                    `{"id":1,"result":{}}`,
		"a different version":           `{"jsonrpc":"1.0","id":1,"result":{}}`,
		"an id that is a fraction":      `{"jsonrpc":"2.0","id":1.5,"result":{}}`,
		"an id that is an object":       `{"jsonrpc":"2.0","id":{},"result":{}}`,
		"a request with a null id":      `{"jsonrpc":"2.0","id":null,"method":"a"}`,
		"a response without an id":      `{"jsonrpc":"2.0","result":{}}`,
		"an empty method":               `{"jsonrpc":"2.0","id":1,"method":""}`,
		"data after the message":        `{"jsonrpc":"2.0","id":1,"result":{}}{}`,
		"an array":                      `["jsonrpc"]`,
		"too many levels":               `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
	}
	for name, frame := range cases {
		t.Run(name, func(t *testing.T) {
			if e, err := Scan([]byte(frame)); err == nil {
				t.Errorf("accepted as %+v", e)
			}
		})
	}
}

func TestUnambiguousDeviationsFromJSONRPCAreAccepted(t *testing.T) {
	cases := map[string]struct {
		frame string
		want  Envelope
	}{
		"an error that is null":  {`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, Envelope{IDKind: IDNumber, Number: 7, Result: []byte(`{}`)}},
		"a result that is null":  {`{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1}}`, Envelope{IDKind: IDNumber, Number: 7, Error: []byte(`{"code":1}`)}},
		"only a null result":     {`{"jsonrpc":"2.0","id":7,"result":null}`, Envelope{IDKind: IDNumber, Number: 7, Result: []byte(`null`)}},
		"an id written 7.0":      {`{"jsonrpc":"2.0","id":7.0,"result":{}}`, Envelope{IDKind: IDNumber, Number: 7, Result: []byte(`{}`)}},
		"an id that is a string": {`{"jsonrpc":"2.0","id":"a\u0062","method":"m"}`, Envelope{IDKind: IDText, Text: "ab", Method: "m"}},
		"space everywhere":       {" { \"jsonrpc\" : \"2.0\" , \"method\" : \"m\" } \r", Envelope{Method: "m"}},
		"unknown members":        {`{"jsonrpc":"2.0","x":1,"x":2,"method":"m"}`, Envelope{Method: "m"}},
		"an escaped name":        {`{"jsonrpc":"2.0","m\u0065thod":"m"}`, Envelope{Method: "m"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Scan([]byte(c.frame))
			if err != nil || got.IDKind != c.want.IDKind || got.Number != c.want.Number || got.Text != c.want.Text || got.Method != c.want.Method ||
				!bytes.Equal(got.Result, c.want.Result) || !bytes.Equal(got.Error, c.want.Error) {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}
