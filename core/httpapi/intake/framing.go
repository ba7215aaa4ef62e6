package intake

import (
	"bytes"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// CheckFraming checks a request's headers against RFC 9112 and RFC 9110. It is stricter than the HTTP library, which
// accepts requests that two parsers may read differently: with bare line feeds, folded lines, or both a length and an
// encoding. The library has already framed the body, so a request that is refused here must be the last on its
// connection.
func CheckFraming(h *fasthttp.RequestHeader) error {
	http11 := string(h.Protocol()) == "HTTP/1.1"
	if !http11 && string(h.Protocol()) != "HTTP/1.0" {
		return errors.New("the version is not HTTP/1.1")
	}
	var f framing
	for line := range bytes.SplitSeq(bytes.TrimSuffix(h.RawHeaders(), []byte("\r\n")), []byte("\r\n")) {
		if len(line) == 0 {
			continue // the end of the headers
		}
		if err := f.add(line); err != nil {
			return err
		}
	}
	return f.check(http11)
}

// CheckHost checks that the target of a request and its Host header specify the same host. A target may include a host
// (absolute-form, RFC 9112 section 3.2.2).
func CheckHost(r *fasthttp.Request) error {
	if !bytes.EqualFold(r.URI().Host(), r.Header.Host()) {
		return errors.New("the request target and the Host header specify different hosts")
	}
	return nil
}

// framing contains the headers that determine where a request ends and which host it is for.
type framing struct{ length, encoding, host header }

// header counts the occurrences of a header that must not be repeated.
type header struct {
	times int
	value []byte // the value of the last occurrence
}

func (h *header) add(value []byte) { h.times, h.value = h.times+1, value }

func (f *framing) add(line []byte) error {
	name, value, found := bytes.Cut(line, []byte{':'})
	if !found || !httpguts.ValidHeaderFieldName(utils.UnsafeString(name)) {
		return errors.New("a header line is folded, or its name is not a token")
	}
	if !httpguts.ValidHeaderFieldValue(utils.UnsafeString(value)) {
		return errors.New("a header value contains a line break or a control character")
	}
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		f.length.add(value)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.encoding.add(value)
	case bytes.EqualFold(name, []byte("Host")):
		f.host.add(value)
	}
	return nil
}

func (f *framing) check(http11 bool) error {
	if f.length.times+f.encoding.times > 1 {
		return errors.New("the length of the body is given more than once")
	}
	if f.length.times == 1 && (len(f.length.value) == 0 || len(bytes.Trim(f.length.value, "0123456789")) != 0) {
		return errors.New("the Content-Length is not a number")
	}
	if f.encoding.times == 1 && (!http11 || !bytes.EqualFold(f.encoding.value, []byte("chunked"))) {
		return errors.New("the only accepted Transfer-Encoding is chunked, on HTTP/1.1")
	}
	if f.host.times != 1 && http11 || f.host.times > 1 {
		return errors.New("the Host header is missing or given more than once")
	}
	if bytes.ContainsFunc(f.host.value, notInHost) {
		return errors.New("the Host header contains an invalid character")
	}
	return nil
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]%", r)
}
