package webguard

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// DPoP returns the token of an Authorization header with the scheme DPoP (RFC 9449), or "" for another scheme.
func DPoP(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "DPoP") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Bearer returns the token of an Authorization header, or "" for another scheme.
func Bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Single returns a header's value: nil if the header is absent, and empty if it is present without a value. It returns
// false for a header that appears more than once, because two readers could use different ones. The value is valid only as
// long as the request.
func Single(h *fasthttp.RequestHeader, name string) (value []byte, ok bool) {
	values := h.PeekAll(name)
	if len(values) == 0 {
		return nil, true
	}
	value = bytes.TrimSpace(values[0])
	if value == nil {
		value = []byte{}
	}
	return value, len(values) == 1
}
