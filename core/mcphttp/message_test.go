package mcphttp

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const pingRequest = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestParseRefusesAmbiguousMessages(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		code       int
	}{
		{"nothing", ``, jsonrpc.CodeParseError},
		{"white space", " \n", jsonrpc.CodeParseError},
		{"a NUL after the message", pingRequest + "\x00", jsonrpc.CodeParseError},
		{"a NUL in a name", "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth\x00od\":\"ping\"}", jsonrpc.CodeParseError},
		{"a byte order mark", "\ufeff" + pingRequest, jsonrpc.CodeParseError},
		{"a byte that is not UTF-8", `{"jsonrpc":"2.0","id":1,"method":"ping` + "\xff" + `"}`, jsonrpc.CodeParseError},
		{"a comment", `{"jsonrpc":"2.0",/**/"id":1,"method":"ping"}`, jsonrpc.CodeParseError},
		{"data after the message", pingRequest + `{}`, jsonrpc.CodeParseError},
		{"params that are nested too deeply", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}`, jsonrpc.CodeParseError},
		{"a message that is nested too deeply", strings.Repeat("[", 101) + strings.Repeat("]", 101), jsonrpc.CodeParseError},
		{"a string", `"ping"`, jsonrpc.CodeInvalidRequest},
		{"a number", `1`, jsonrpc.CodeInvalidRequest},
		{"null", `null`, jsonrpc.CodeInvalidRequest},
		{"an array inside a batch", `[[]]`, jsonrpc.CodeInvalidRequest},
		{"a batch that is too large", `[` + strings.Repeat(pingRequest+`,`, 100) + pingRequest + `]`, jsonrpc.CodeInvalidRequest},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, jsonrpc.CodeInvalidRequest},
		{"method twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","meth\u006fd":"tools/list"}`, jsonrpc.CodeInvalidRequest},
		{"method and Method", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}`, jsonrpc.CodeInvalidRequest},
		{"Method alone", `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"a letter that case-folds to an ASCII letter", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","argument\u017f":{}}}`, jsonrpc.CodeInvalidRequest},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"an unknown key twice", `{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}`, jsonrpc.CodeInvalidRequest},
		{"name twice in params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, jsonrpc.CodeInvalidRequest},
		{"Name in params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}`, jsonrpc.CodeInvalidRequest},
		{"progressToken twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"progressToken":2}}}`, jsonrpc.CodeInvalidRequest},
		{"params that are an array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, jsonrpc.CodeInvalidRequest},
		{"params that are null", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, jsonrpc.CodeInvalidRequest},
		{"a method and a result", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, jsonrpc.CodeInvalidRequest},
		{"a result and an error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, jsonrpc.CodeInvalidRequest},
		{"an empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, jsonrpc.CodeInvalidRequest},
		{"a method that is a number", `{"jsonrpc":"2.0","id":1,"method":1}`, jsonrpc.CodeInvalidRequest},
		{"no version", `{"id":1,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"an id that is true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"an id that is an array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, jsonrpc.CodeInvalidRequest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			messages, _, f := parseBody([]byte(tc.body))
			if f == nil || f.code != tc.code {
				t.Errorf("got %+v %+v, want code %d", messages, f, tc.code)
			}
		})
	}
}

func TestParseKeepsThePartsAsWritten(t *testing.T) {
	messages, batch, f := parseBody([]byte(" [ {\"jsonrpc\" : \"2.0\", \"id\":\t1.50 ,\"meth\\u006fd\":\"a\\\"b\", \"params\": { \"k]\\\"\" : [1, {\"]\":2}] } }, {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"}\"}} ] "))
	if f != nil || !batch || len(messages) != 2 {
		t.Fatalf("%+v %v %+v", messages, batch, f)
	}
	first, second := messages[0], messages[1]
	if string(first.ID) != "1.50" || first.Method != `a"b` || string(first.Params) != "{ \"k]\\\"\" : [1, {\"]\":2}] }" || !first.IsCall() {
		t.Errorf("%+v", first)
	}
	if !second.IsResponse() || !second.Failed || string(second.Payload) != `{"code":1,"message":"}"}` {
		t.Errorf("%+v", second)
	}
}

// agree fails if parse, the SDK's decoder and the standard library's decoder read different methods, names or params
// from the same body. The standard library's decoder ignores case and uses the last of two equal keys.
func agree(t *testing.T, body []byte) {
	t.Helper()
	messages, batch, f := parseBody(body)
	if f != nil || batch {
		return
	}
	m := messages[0]
	var loose struct {
		Method string
		Params struct{ Name any }
	}
	_ = json.Unmarshal(body, &loose)
	if loose.Method != m.Method {
		t.Fatalf("%q: the standard library sees method %q, parse %q", body, loose.Method, m.Method)
	}
	if m.IsResponse() {
		return
	}
	msg, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		t.Fatalf("%q: parse accepts what the SDK rejects: %v", body, err)
	}
	req := msg.(*jsonrpc.Request)
	if req.Method != m.Method || string(req.Params) != string(m.Params) || req.IsCall() != m.IsCall() {
		t.Fatalf("%q: the SDK sees %q %q, parse %q %q", body, req.Method, req.Params, m.Method, m.Params)
	}
	if m.Params == nil {
		return
	}
	var name any
	if raw := m.Param("name"); raw != nil {
		if err := json.Unmarshal(raw, &name); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(name) != fmt.Sprint(loose.Params.Name) {
		t.Fatalf("%q: the standard library sees name %v, parse %v", body, loose.Params.Name, name)
	}
}

func TestAllDecodersSeeTheSameMethodAndTool(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	for range 5000 {
		var fields, params []string
		for range 1 + random.IntN(4) {
			params = append(params, fmt.Sprintf("%q:%s", pick("name", "Name", "na\u006de", "NAME", "arguments", "_meta", "x"), pick(`"a"`, `"b"`, `{}`, `{"progressToken":1}`, `[1,"]"]`, `null`)))
		}
		for range 2 + random.IntN(4) {
			fields = append(fields, fmt.Sprintf(`"%s":%s`, pick("jsonrpc", "id", "method", "method", "meth\\u006fd", "Method", "params", "params", "METHOD", "m\u0435thod", "x"),
				pick(`"2.0"`, `1`, `"ping"`, `"tools/call"`, `{`+strings.Join(params, ",")+`}`)))
		}
		agree(t, []byte(`{"jsonrpc":"2.0",`+strings.Join(fields, pick(",", ", ", ",\n"))+`}`+pick("", " ", "x", "{}", "\x00")))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{pingRequest, `{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"demo__echo","arguments":{"a":[{"b":"\\\""}]}}}`, `[` + pingRequest + `]`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":-1e9,"method":"m","params":{"name":"\ud83d\ude00"}}`, "{\"\\u006dethod\":1}", `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { agree(t, body) })
}
