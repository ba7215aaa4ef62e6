package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestJSONOverOneKilobyteIsCompressedIfTheClientAcceptsIt(t *testing.T) {
	h := open(t, newAccess(), nil)
	plain := h.do(t, call{method: "GET", path: "/v1/openapi.json"})
	if plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("without Accept-Encoding: %v", plain.Header)
	}
	for accept, want := range map[string]string{
		"gzip": "gzip", "br": "br", "gzip, deflate, br, zstd": "br", "br;q=0.5, gzip;q=0.8": "gzip", "*": "br", "br;q=0, *": "gzip",
		"gzip;q=0": "", "identity": "", "deflate": "", "br;q=x": "",
	} {
		r := h.do(t, call{method: "GET", path: "/v1/openapi.json", header: map[string]string{"Accept-Encoding": accept}})
		body := []byte(r.body)
		switch want {
		case "gzip":
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatalf("%s: %v", accept, err)
			}
			body, _ = io.ReadAll(z)
		case "br":
			body, _ = fasthttp.AppendUnbrotliBytes(nil, body)
		}
		if got := r.Header.Get("Content-Encoding"); got != want || string(body) != plain.body {
			t.Errorf("%s: encoding %q, want %q; same content: %v", accept, got, want, string(body) == plain.body)
		}
	}
}

func TestSmallBodiesKeysAndStreamsAreNotCompressed(t *testing.T) {
	h := open(t, newAccess(), nil)
	for range 10 {
		h.do(t, call{method: "POST", path: "/v1/keys", body: `{"name":"` + strings.Repeat("x", 90) + `"}`})
	}
	for _, path := range []string{"/v1/health", "/v1/keys"} {
		r := h.do(t, call{method: "GET", path: path, header: map[string]string{"Accept-Encoding": "gzip"}})
		if r.StatusCode != 200 || r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
	}
}

// HTML escapes make a text of < six times as long, in memory and on the wire.
func TestResponsesHaveNoHTMLEscapes(t *testing.T) {
	h := open(t, newAccess(), nil)
	const name = "<a> & <b>"
	if r := h.do(t, call{method: "POST", path: "/v1/keys", body: `{"name":"` + name + `"}`}); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/keys"}); !strings.Contains(r.body, name) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
