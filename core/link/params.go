package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// request is params on their way out: checked, with the caller's progress token found.
type request struct {
	method string
	params []byte      // nil when there are none
	token  span        // where params hold the caller's progress token; empty when they do not
	header http.Header // what goes with it over HTTP; nil for nothing
	hurry  bool        // ErrCrowded rather than to wait for room
}

// span is a part of a byte slice; the zero span is empty.
type span struct{ from, to int }

func (s span) empty() bool { return s.to == 0 }

// newRequest checks that params are one JSON object, so that nothing in them can leave their place
// in the message, and finds the progress token.
func newRequest(method string, params []byte) (request, error) {
	r, _, err := readRequest(method, params)
	return r, err
}

// readRequest is newRequest, and returns params._meta besides.
func readRequest(method string, params []byte) (r request, meta []byte, err error) {
	r = request{method: method, params: params}
	if !plainMethod(method) {
		return r, nil, fmt.Errorf("method %q has characters that no MCP method has", method)
	}
	if len(params) == 0 {
		r.params = nil
		return r, nil, nil
	}
	if meta, err = findMeta(params); err == nil && meta != nil {
		var token []byte
		if token, err = member(meta, "progressToken"); token != nil {
			r.token = spanOf(params, token)
		}
	}
	if err != nil {
		return r, nil, fmt.Errorf("%w: %w", ErrParams, err)
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

// findMeta checks all of params and finds _meta, nil when it is no object.
func findMeta(params []byte) (meta []byte, err error) {
	s := rawjson.Scanner{Data: params}
	s.Space()
	err = s.Object(func(key, value []byte) error {
		if string(rawjson.Name(key)) == "_meta" {
			return once(&meta, value)
		}
		return nil
	})
	if err == nil && !s.End() {
		err = rawjson.ErrSyntax
	}
	if err != nil || meta == nil || meta[0] != '{' {
		return nil, err
	}
	return meta, nil
}

// member is the value of the named member of an object; nil when there is none.
func member(object []byte, wanted string) ([]byte, error) {
	var found []byte
	s := rawjson.Scanner{Data: object}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		if string(rawjson.Name(key)) == wanted {
			return once(&found, value)
		}
		return nil
	})
	return found, err
}

// spanOf is where part, a slice of whole, lies in it.
func spanOf(whole, part []byte) span {
	from := cap(whole) - cap(part)
	return span{from: from, to: from + len(part)}
}

// append writes params with the caller's token replaced by our own, on one line.
func (r *request) append(buf []byte, token int64) []byte {
	start := len(buf)
	if r.token.empty() {
		buf = append(buf, r.params...)
	} else {
		buf = append(buf, r.params[:r.token.from]...)
		buf = strconv.AppendInt(buf, token, 10)
		buf = append(buf, r.params[r.token.to:]...)
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
	if r.token.empty() {
		return nil
	}
	return bytes.Clone(r.params[r.token.from:r.token.to])
}

// progressOf finds the token of a progress notification; ok is false when it is not one of ours.
func progressOf(params []byte) (id int64, token span, ok bool) {
	value, err := member(params, "progressToken")
	if err != nil || value == nil {
		return 0, span{}, false
	}
	id, ok = integer(value)
	return id, spanOf(params, value), ok
}

// WithToken is a progress notification (notifications/progress) under another progress token. What has
// none stays as it is.
func (n Notification) WithToken(token json.RawMessage) Notification {
	if had, err := member(n.Params, "progressToken"); err == nil && had != nil {
		n.Params = withToken(n.Params, spanOf(n.Params, had), token)
	}
	return n
}

// withToken is a copy of params with the caller's token put back.
func withToken(params []byte, at span, token []byte) []byte {
	out := make([]byte, 0, len(params)+len(token))
	out = append(out, params[:at.from]...)
	out = append(out, token...)
	return append(out, params[at.to:]...)
}
