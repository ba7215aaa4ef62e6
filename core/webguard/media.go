package webguard

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"
)

const typeJSON = "application/json"

// JSON reports whether the Content-Type of a request is application/json, which no form of a page of
// another site can send, and returns the charset that it names, "" for none.
func JSON(h *fasthttp.RequestHeader) (charset string, ok bool) {
	value := h.ContentType()
	if string(value) == typeJSON { // nearly always
		return "", true
	}
	media, params, err := mime.ParseMediaType(string(value))
	return params["charset"], err == nil && media == typeJSON
}

// Encoded reports whether the body of a request has a Content-Encoding, which neither HTTP package decodes:
// what a small body expands to has no limit.
func Encoded(h *fasthttp.RequestHeader) bool {
	encoding := h.Peek(fasthttp.HeaderContentEncoding)
	return len(encoding) > 0 && !strings.EqualFold(string(encoding), "identity")
}

// Accepts reports whether the Accept of a request allows a media type, by name or by range.
func Accepts(h *fasthttp.RequestHeader, media string) bool {
	family := media[:strings.IndexByte(media, '/')+1]
	for _, value := range h.PeekAll(fasthttp.HeaderAccept) {
		for item := range bytes.SplitSeq(value, []byte{','}) {
			item, _, _ = bytes.Cut(item, []byte{';'})
			item = bytes.TrimSpace(item)
			named, ranged := bytes.CutSuffix(item, []byte{'*'})
			switch {
			case bytes.EqualFold(item, []byte(media)), ranged && bytes.EqualFold(named, []byte(family)), string(item) == "*/*":
				return true
			}
		}
	}
	return false
}
