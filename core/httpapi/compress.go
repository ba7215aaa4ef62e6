package httpapi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

const (
	minCompressed = 1 << 10 // bytes; smaller bodies are not worth compressing
	brotliLevel   = 4
	gzipLevel     = 5

	encodingBrotli = "br"
	encodingGzip   = "gzip"
)

// compress encodes the JSON body of a response with an encoding that the client accepts. It does not
// compress responses that contain both a secret and text from the request, because their length would leak the secret.
func compress(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	if ctx.Response.IsBodyStream() || ctx.Hijacked() || !bytes.HasPrefix(h.ContentType(), []byte(fiber.MIMEApplicationJSON)) ||
		len(h.ContentEncoding()) > 0 || !compressible(ctx.Path()) {
		return
	}
	body := ctx.Response.Body()
	if len(body) < minCompressed {
		return
	}
	h.Add(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if ctx.IsHead() {
		return
	}
	switch acceptedEncoding(string(ctx.Request.Header.Peek(fiber.HeaderAcceptEncoding))) {
	case encodingBrotli:
		ctx.Response.SetBodyRaw(fasthttp.AppendBrotliBytesLevel(nil, body, brotliLevel))
		h.SetContentEncoding(encodingBrotli)
	case encodingGzip:
		ctx.Response.SetBodyRaw(fasthttp.AppendGzipBytesLevel(nil, body, gzipLevel))
		h.SetContentEncoding(encodingGzip)
	default:
		return
	}
	if tag := h.Peek(fiber.HeaderETag); len(tag) > 0 { // the same content in different bytes
		h.Set(fiber.HeaderETag, "W/"+string(tag))
	}
}

func compressible(path []byte) bool {
	return bytes.HasPrefix(path, []byte("/v1/")) && !bytes.HasPrefix(path, []byte("/v1/keys")) && !bytes.HasPrefix(path, []byte("/v1/auth/"))
}

// acceptedEncoding returns br or gzip, whichever the client prefers (RFC 9110 section 12.5.3). It returns br if the
// client has no preference, and "" if it accepts neither.
func acceptedEncoding(accept string) string {
	best, bestWeight := "", 0.0
	for _, name := range []string{encodingBrotli, encodingGzip} {
		if w := weightOf(accept, name); w > bestWeight {
			best, bestWeight = name, w
		}
	}
	return best
}

// weightOf returns the weight of an encoding in an Accept-Encoding header, or 0 if it is not accepted.
func weightOf(accept, encoding string) float64 {
	wildcard := 0.0
	for item := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(item, ";")
		weight := 1.0
		if q, found := strings.CutPrefix(strings.TrimSpace(params), "q="); found {
			parsed, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			if err != nil {
				return 0
			}
			weight = parsed
		}
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, encoding):
			return weight
		case name == "*":
			wildcard = weight
		}
	}
	return wildcard
}
