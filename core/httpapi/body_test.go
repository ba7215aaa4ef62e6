package httpapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

func TestRefusedBodies(t *testing.T) {
	h := open(t, newAccess(), nil)
	const tool, install, login, say = "/v1/tools/call", "/v1/apps/install", "/v1/auth/login", "/v1/chat"
	for _, c := range []struct{ name, path, body, names string }{
		{"not JSON", tool, `{"tool":`, "not JSON"},
		{"two documents", tool, `{"tool":"a__b"}{"tool":"c__d"}`, "not JSON"},
		{"data after the object", tool, `{"tool":"a__b"} x`, "not JSON"},
		{"an array", tool, `[]`, "must be a JSON object"},
		{"null", tool, " null\n", "must be a JSON object"},
		{"a string", tool, `"tool"`, "must be a JSON object"},
		{"a number", login, `1`, "must be a JSON object"},
		{"a NUL byte", tool, "{\"tool\":\"a\x00\"}", "not JSON"},
		{"not UTF-8", tool, "{\"tool\":\"a\xff\"}", "UTF-8"},
		{"nested too deeply", tool, `{"tool":"a__b","arguments":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "more than 100 levels deep"},
		{"one level too deep", tool, `{"tool":"a__b","arguments":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "more than 100 levels deep"},
		{"the same key twice", tool, `{"tool":"a__b","tool":"c__d"}`, "tool is given more than once"},
		{"the same key twice, once escaped", tool, `{"tool":"a__b","\u0074ool":"c__d"}`, "tool is given more than once"},
		{"the same key twice inside arguments", tool, `{"tool":"a__b","arguments":{"x":[{"y":1,"y":2}]}}`, "arguments.x[].y is given more than once"},
		{"a key in another case", tool, `{"Tool":"a__b"}`, "did you mean tool?"},
		{"a key in another case next to the right one", tool, `{"tool":"a__b","TOOL":"c__d"}`, "did you mean tool?"},
		{"a key that folds to another only in Unicode", tool, `{"tool":"a__b","argumentſ":1}`, "did you mean arguments?"},
		{"a nested key in another case", install, `{"url":"https://a.example","transport":{"auth":{"Type":"none"}}}`, "did you mean type?"},
		{"tool of the wrong type", tool, `{"tool":1}`, "tool must be a string, not a number"},
		{"server of the wrong type", tool, `{"server":{},"tool":"x"}`, "server must be a string, not an object"},
		{"arguments of the wrong type", tool, `{"tool":"a__b","arguments":[1]}`, "arguments must be an object"},
		{"arguments as text", tool, `{"tool":"a__b","arguments":"{}"}`, "arguments must be an object"},
		{"no tool", tool, `{"server":"a"}`, "tool is missing"},
		{"a bare tool without a server", tool, `{"tool":"b"}`, "server is missing"},
		{"key of the wrong type", login, `{"key":123}`, "key must be a string, not a number"},
		{"key null", login, `{"key":null}`, "key is missing"},
		{"no key", login, `{}`, "key is missing"},
		{"path of the wrong type", install, `{"path":["a"]}`, "path must be a string, not an array"},
		{"transport of the wrong type", install, `{"url":"https://a.example","transport":"sse"}`, "transport must be an object, not a string"},
		{"auth of the wrong type", install, `{"url":"https://a.example","transport":{"auth":true}}`, "transport.auth must be an object, not a boolean"},
		{"token of the wrong type", install, `{"url":"https://a.example","transport":{"auth":{"token":1}}}`, "transport.auth.token must be a string, not a number"},
		{"an env value of the wrong type", install, `{"path":"/a","env":{"J":"x","K":1}}`, "env.K must be a string, not a number"},
		{"a header of the wrong type", install, `{"url":"https://a.example","transport":{"headers":{"X-A":["b"]}}}`, "transport.headers.X-A must be a string, not an array"},
		{"a list item of the wrong type", say, `{"message":"x","allowedTools":["a",1]}`, "allowedTools[] must be a string, not a number"},
		{"a fraction instead of a whole number", say, `{"message":"x","maxIterations":1.5}`, "maxIterations must be a whole number, not 1.5"},
		{"a number that is too large", say, `{"message":"x","maxIterations":1e99}`, "maxIterations must be a whole number, not 1e99"},
		{"a string instead of a whole number", say, `{"message":"x","maxIterations":"5"}`, "maxIterations must be a whole number, not a string"},
		{"env of the wrong type", install, `{"path":"/a","env":[]}`, "env must be an object, not an array"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := h.do(t, call{method: "POST", path: c.path, body: c.body})
			if r.StatusCode != 400 || r.code() != "bad_request" || !strings.Contains(r.json(t)["message"].(string), c.names) {
				t.Errorf("%d %s, want a message that contains %q", r.StatusCode, r.body, c.names)
			}
		})
	}
	if len(h.apps.installed) != 0 {
		t.Errorf("a refused body installed %v", h.apps.installed)
	}
}

func TestAWholeNumberMayHaveAFraction(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, number := range []string{"46", "46.0", "4.6e1", "4600E-2", " 46.00 "} {
		r := h.do(t, call{method: "POST", path: "/v1/conversations/conv_0000000000000001/fork", body: `{"other":1.5,"atMessage":` + number + `}`})
		if r.StatusCode == 400 {
			t.Errorf("%s: %d %s", number, r.StatusCode, r.body)
		}
	}
	for _, number := range []string{"46.5", "1e99", "-1e-1", "90071992547409930000.0"} {
		r := h.do(t, call{method: "POST", path: "/v1/conversations/conv_0000000000000001/fork", body: `{"atMessage":` + number + `}`})
		if r.StatusCode != 400 || !strings.Contains(r.body, "whole number") {
			t.Errorf("%s: %d %s", number, r.StatusCode, r.body)
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b","extra":{"deep":[1]},"arguments":{"K":1,"k":2}}`})
	if r.StatusCode != 200 || string(h.tools.calls[0].Arguments) != `{"K":1,"k":2}` {
		t.Errorf("%d %s, arguments %s", r.StatusCode, r.body, h.tools.calls[0].Arguments)
	}
}

func TestAnEmptyBodyIsReportedAsEmpty(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"/v1/tools/call", "/v1/apps/install", "/v1/auth/login"} {
		if r := h.do(t, call{method: "POST", path: path}); r.StatusCode != 400 || !strings.Contains(r.body, "empty") {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

func TestOnlyJSONIsAccepted(t *testing.T) {
	h := open(t, newAccess(), nil)
	for media, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json-patch+json": 415, "application/json; charset=latin1": 415, "multipart/form-data; boundary=x": 415,
	} {
		r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`, header: map[string]string{"Content-Type": media}})
		if r.StatusCode != status || (status == 415 && r.code() != "unsupported_media_type") {
			t.Errorf("%q: %d %s", media, r.StatusCode, r.body)
		}
	}
	r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`, header: map[string]string{"Content-Encoding": "gzip"}})
	if r.StatusCode != 415 {
		t.Errorf("an encoded body: %d %s", r.StatusCode, r.body)
	}
}

// Whatever a body contains, the response is not a 5xx and the server keeps running.
func TestMutatedBodiesNeverCauseAServerError(t *testing.T) {
	h := open(t, newAccess(), nil)
	seeds := []string{`{"tool":"a__b","arguments":{"x":[1,{"y":null}],"z":"\u00e9"}}`, `{"url":"https://a.example","transport":{"type":"sse","auth":{"type":"none"}},"env":{"K":"v"}}`, `{"key":"the-right-key"}`}
	random := rand.New(rand.NewPCG(1, 2))
	conn, r := dial(t, h.addr)
	for i := range 3000 {
		body := []byte(seeds[random.IntN(len(seeds))])
		for range random.IntN(6) {
			at := random.IntN(len(body))
			switch random.IntN(3) {
			case 0:
				body[at] = byte(random.IntN(256))
			case 1:
				body = slices.Insert(body, at, body[random.IntN(len(body))])
			default:
				body = slices.Delete(body, at, min(at+1+random.IntN(3), len(body)-1)+1)
				body = append(body, '}')
			}
		}
		path := []string{"/v1/tools/call", "/v1/apps/install", "/v1/auth/login", "/v1/auth/logout", "/v1/apps/echo/start"}[i%5]
		h.access.mu.Lock()
		clear(h.access.attempts)
		h.access.mu.Unlock()
		status, answer := exchange(t, conn, r, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, h.access.key, len(body), body))
		if status < 200 || status >= 500 {
			t.Fatalf("%s %q: %d %s", path, body, status, answer)
		}
	}
}

func FuzzBodiesNeverCauseAServerError(f *testing.F) {
	h := open(f, newAccess(), nil)
	for _, seed := range []string{`{"tool":"a__b"}`, `{"tool":"a__b","arguments":{"x":[{}]}}`, `{"server":null}`, `[`, `{"a":1,"a":2}`, "\xff", `{"tool":1e999}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/tools/call", "/v1/apps/install", "/v1/auth/login"} {
			h.access.mu.Lock()
			clear(h.access.attempts)
			h.access.mu.Unlock()
			if r := h.do(t, call{method: "POST", path: path, body: body}); r.StatusCode >= 500 {
				t.Errorf("%s %q: %d %s", path, body, r.StatusCode, r.body)
			}
		}
	})
}

func TestTheMemoryForABodyIsProportionalToItsSize(t *testing.T) {
	key := strings.Repeat("k", 190)
	deep := strings.Repeat(`{"`+key+`":`, 5000) + "1" + strings.Repeat("}", 5000)
	wide := `{"arguments":{` + strings.TrimSuffix(strings.Repeat(`"`+key+`":{},`, 1), ",") + `}}`
	var many strings.Builder
	many.WriteString(`{"arguments":{"x":0`)
	for i := 0; many.Len() < maxBody-100; i++ {
		fmt.Fprintf(&many, `,"%x":0`, i)
	}
	many.WriteString("}}")
	for name, text := range map[string]string{"deep": deep, "wide": wide, "many keys": many.String()} {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.SetContentType("application/json")
		ctx.Request.SetBodyString(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = httpio.ReadBody[struct {
			Arguments json.RawMessage `json:"arguments"`
		}](ctx)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 48*uint64(len(text))+64<<10 { // total allocations; the peak is far lower
			t.Errorf("%s: %d bytes were allocated for a body of %d", name, used, len(text))
		}
	}
}
