package webguard

import (
	"bytes"
	"mime"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

const typeJSON = "application/json"

// JSON reports whether the Content-Type of a request is application/json, which an HTML form on another site cannot
// send, and specifies no charset but UTF-8.
func JSON(h *fasthttp.RequestHeader) bool {
	value := h.ContentType()
	if string(value) == typeJSON { // nearly always
		return true
	}
	media, params, err := mime.ParseMediaType(string(value))
	charset, named := params["charset"]
	return err == nil && media == typeJSON && (!named || strings.EqualFold(charset, "utf-8"))
}

// Encoded reports whether the body of a request has a Content-Encoding. Neither HTTP package decodes these, because a
// small body may expand to any size.
func Encoded(h *fasthttp.RequestHeader) bool {
	encoding := h.Peek(fasthttp.HeaderContentEncoding)
	return len(encoding) > 0 && !strings.EqualFold(string(encoding), "identity")
}

// Accepts reports whether the Accept header of a request names a media type, or a range that includes it, and does not
// refuse it (q=0).
func Accepts(h *fasthttp.RequestHeader, media string) bool {
	weight, named := weigh(h, media)
	return named && weight > 0
}

// Refuses reports whether the Accept header of a request refuses a media type (q=0), by name or by a range. A type that
// the header does not mention is not refused: RFC 9110 lets a server send it.
func Refuses(h *fasthttp.RequestHeader, media string) bool {
	weight, named := weigh(h, media)
	return named && weight <= 0
}

// Weight returns the weight (q) that the Accept header of a request gives to a media type. The weight is 0 if the
// header refuses the type or does not name it, and 1 if there is no such header.
func Weight(h *fasthttp.RequestHeader, media string) float64 {
	weight, _ := weigh(h, media)
	return weight
}

// weigh returns the weight of the most specific range that includes a media type (RFC 9110 section 12.5.1).
func weigh(h *fasthttp.RequestHeader, media string) (weight float64, named bool) {
	family := media[:strings.IndexByte(media, '/')+1]
	best := -1
	values := h.PeekAll(fasthttp.HeaderAccept)
	for _, value := range values {
		for item := range bytes.SplitSeq(value, []byte{','}) {
			name, params, _ := bytes.Cut(item, []byte{';'})
			name = bytes.TrimSpace(name)
			wide, ranged := bytes.CutSuffix(name, []byte{'*'})
			specific := -1
			switch {
			case bytes.EqualFold(name, []byte(media)):
				specific = 2
			case ranged && bytes.EqualFold(wide, []byte(family)):
				specific = 1
			case string(name) == "*/*":
				specific = 0
			}
			if specific > best {
				best, weight = specific, weightIn(params)
			}
		}
	}
	if len(values) == 0 {
		return 1, false
	}
	return weight, best >= 0
}

// weightIn returns the q parameter, or 1 if it is missing. A q that is not a number is treated as 0, a refusal.
func weightIn(params []byte) float64 {
	for param := range strings.SplitSeq(string(params), ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 0
		}
		return weight
	}
	return 1
}
