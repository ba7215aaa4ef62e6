package httpapi

import (
	"bytes"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// wellFormed holds a request's headers against RFC 9112 and 9110, more strictly than the HTTP
// library, which forgives what two readers may read differently: bare line feeds, folded lines, a
// length beside an encoding. The library has framed the body by then, so a request that is refused here
// must be the last of its connection.
func wellFormed(h *fasthttp.RequestHeader) error {
	protocol := string(h.Protocol())
	if protocol != "HTTP/1.1" && protocol != "HTTP/1.0" {
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
	return f.check(protocol)
}

// framing is what decides where a request ends, and for whom it is.
type framing struct {
	lengths, encodings, hosts []string
}

func (f *framing) add(line []byte) error {
	name, value, found := strings.Cut(string(line), ":")
	if !found || !httpguts.ValidHeaderFieldName(name) {
		return errors.New("a header line is folded, or its name is not a token")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("a header value holds a line break or a control character")
	}
	value = strings.Trim(value, " \t")
	switch {
	case strings.EqualFold(name, "Content-Length"):
		f.lengths = append(f.lengths, value)
	case strings.EqualFold(name, "Transfer-Encoding"):
		f.encodings = append(f.encodings, value)
	case strings.EqualFold(name, "Host"):
		f.hosts = append(f.hosts, value)
	}
	return nil
}

func (f *framing) check(protocol string) error {
	if len(f.lengths)+len(f.encodings) > 1 {
		return errors.New("the length of the body is given more than once")
	}
	if len(f.lengths) == 1 && (f.lengths[0] == "" || strings.Trim(f.lengths[0], "0123456789") != "") {
		return errors.New("the Content-Length is not a number")
	}
	if len(f.encodings) == 1 && (protocol == "HTTP/1.0" || !strings.EqualFold(f.encodings[0], "chunked")) {
		return errors.New("the Transfer-Encoding is not chunked on HTTP/1.1")
	}
	if len(f.hosts) != 1 && protocol == "HTTP/1.1" || len(f.hosts) > 1 {
		return errors.New("there is not one Host")
	}
	if len(f.hosts) == 1 && strings.ContainsFunc(f.hosts[0], notInHost) {
		return errors.New("the Host holds a character that no host has")
	}
	return nil
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]%", r)
}
