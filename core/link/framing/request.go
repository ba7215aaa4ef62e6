package framing

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Request is a request whose params were checked.
type Request struct {
	Method string
	Params []byte      // nil when there are none
	Header http.Header // sent with it over HTTP; nil for none
	Sender string      // who shares the write queue: requests of one sender are written in order; "" for the server itself

	token rawjson.Span // of the caller's progress token in Params; empty when there is none
	other bool         // params._meta is not an object
	added []byte       // JSON text that is sent with Params, nil for none
	addAt int          // where in Params added goes, before token
}

// ReadRequest checks that params are one JSON object, so that nothing in them can end their place in the
// message, finds the progress token, and returns where params._meta is; the span is empty when there is no
// such object.
func ReadRequest(method string, params []byte) (r Request, meta rawjson.Span, err error) {
	r = Request{Method: method, Params: params}
	if !validMethod(method) {
		return r, meta, fmt.Errorf("method %q has characters that no MCP method has", method)
	}
	if len(params) == 0 {
		r.Params = nil
		return r, meta, nil
	}
	meta, err = rawjson.Find(params, "_meta")
	if err == nil && !meta.Empty() {
		if params[meta.From] != '{' {
			r.other = true
			return r, rawjson.Span{}, nil
		}
		r.token, err = rawjson.Find(meta.In(params), "progressToken")
		r.token = r.token.After(meta.From)
	}
	if err != nil {
		return r, meta, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return r, meta, nil
}

// AddMeta has members sent at the beginning of params._meta. at is where ReadRequest found it. members are
// JSON text without braces, and must not be there already. A _meta that is not an object stays as it is.
func (r *Request) AddMeta(at rawjson.Span, members []byte) {
	var before, after string
	r.addAt = at.From + 1
	switch {
	case r.other:
		return
	case at.Empty() && len(r.Params) == 0:
		before, after, r.addAt = `{"_meta":{`, "}}", 0
	case at.Empty():
		r.addAt = bytes.IndexByte(r.Params, '{') + 1
		before, after = `"_meta":{`, "}"
	}
	if rest := bytes.TrimLeft(r.Params[r.addAt:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		after += ","
	}
	r.added = make([]byte, 0, len(before)+len(members)+len(after))
	r.added = append(append(append(r.added, before...), members...), after...)
}

// HasParams reports whether params are sent.
func (r *Request) HasParams() bool { return r.Params != nil || r.added != nil }

// Size is about how many bytes AppendMessage appends.
func (r *Request) Size() int { return len(r.Params) + len(r.added) + len(r.Method) + 128 }

func validMethod(method string) bool {
	for _, c := range []byte(method) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return method != ""
}

// AppendMessage appends the request with an id, followed by a line feed.
func (r *Request) AppendMessage(buf []byte, id int64) []byte {
	buf = append(buf, `{"jsonrpc":"2.0","id":`...)
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, `,"method":"`...)
	buf = append(append(buf, r.Method...), '"')
	if r.HasParams() {
		buf = r.AppendParams(append(buf, `,"params":`...), id)
	}
	return append(buf, '}', '\n')
}

// AppendParams appends the params on one line, with the caller's progress token replaced.
func (r *Request) AppendParams(buf []byte, token int64) []byte {
	start, from := len(buf), 0
	if r.added != nil {
		buf, from = append(append(buf, r.Params[:r.addAt]...), r.added...), r.addAt
	}
	if !r.token.Empty() {
		buf = strconv.AppendInt(append(buf, r.Params[from:r.token.From]...), token, 10)
		from = r.token.To
	}
	buf = append(buf, r.Params[from:]...)
	OneLine(buf[start:])
	return buf
}

// CallerToken returns a copy of the progress token as the caller wrote it; nil when there is none.
func (r *Request) CallerToken() []byte {
	if r.token.Empty() {
		return nil
	}
	return bytes.Clone(r.Params[r.token.From:r.token.To])
}

// ProgressToken finds the token in the params of a progress notification; ok is false when it is not
// an integer, as those of the server are.
func ProgressToken(params []byte) (id int64, token rawjson.Span, ok bool) {
	token, err := rawjson.Find(params, "progressToken")
	if err != nil || token.Empty() {
		return 0, token, false
	}
	id, ok = Integer(token.In(params))
	return id, token, ok
}
