package link

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// request is params on their way out: checked, with the caller's progress token found.
type request struct {
	method string
	params []byte       // nil when there are none
	token  rawjson.Span // where params hold the caller's progress token; empty when they do not
	header http.Header  // what goes with it over HTTP; nil for nothing
	hurry  bool         // ErrQueueFull rather than wait for space
}

// newRequest checks that params are one JSON object, so that nothing in them can leave their place
// in the message, and finds the progress token.
func newRequest(method string, params []byte) (request, error) {
	r, _, err := readRequest(method, params)
	return r, err
}

// readRequest is newRequest, and returns besides where params._meta lies, empty when it is no object.
func readRequest(method string, params []byte) (r request, meta rawjson.Span, err error) {
	r = request{method: method, params: params}
	if !plainMethod(method) {
		return r, meta, fmt.Errorf("method %q has characters that no MCP method has", method)
	}
	if len(params) == 0 {
		r.params = nil
		return r, meta, nil
	}
	meta, err = rawjson.Find(params, "_meta")
	if err == nil && !meta.Empty() {
		if params[meta.From] != '{' {
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

func plainMethod(method string) bool {
	for _, c := range []byte(method) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return method != ""
}

// append writes params with the caller's token replaced by our own, on one line.
func (r *request) append(buf []byte, token int64) []byte {
	start := len(buf)
	if r.token.Empty() {
		buf = append(buf, r.params...)
	} else {
		buf = append(buf, r.params[:r.token.From]...)
		buf = strconv.AppendInt(buf, token, 10)
		buf = append(buf, r.params[r.token.To:]...)
	}
	oneLine(buf[start:])
	return buf
}

// oneLine turns line breaks into spaces. In valid JSON they stand between tokens only.
func oneLine(raw []byte) {
	for _, c := range []byte{'\n', '\r'} {
		for rest := raw; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// callerToken is the token as the caller wrote it, copied; nil when there is none.
func (r *request) callerToken() []byte {
	if r.token.Empty() {
		return nil
	}
	return bytes.Clone(r.params[r.token.From:r.token.To])
}

// progressOf finds the token of a progress notification; ok is false when it is not one of ours.
func progressOf(params []byte) (id int64, token rawjson.Span, ok bool) {
	token, err := rawjson.Find(params, "progressToken")
	if err != nil || token.Empty() {
		return 0, token, false
	}
	id, ok = integer(token.In(params))
	return id, token, ok
}
