package webguard

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// DPoP is the token of an Authorization header of the scheme DPoP (RFC 9449), "" when it is of another one.
func DPoP(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "DPoP") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Bearer is the token of an Authorization header, "" when the header is of another scheme.
func Bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Single is a header's value, nil when it is absent. It is false for a header that comes more than once:
// two readers could take different ones. The value belongs to the request.
func Single(h *fasthttp.RequestHeader, name string) (value []byte, ok bool) {
	values := h.PeekAll(name)
	if len(values) == 0 {
		return nil, true
	}
	return bytes.TrimSpace(values[0]), len(values) == 1
}
