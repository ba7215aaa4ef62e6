package listener

import (
	"strings"
	"testing"
)

func TestABareLineFeedInARequestLineIsFoundAtAnyReadSize(t *testing.T) {
	bare := "POST /v1/a HTTP/1.1\nHost: x\r\n\r\n"
	for text, want := range map[string]bool{
		bare: true, strings.Replace(bare, "\n", "\r\n", 1): false, "GET /v1/b HTTP/1.1\r\n\r\n" + bare: true,
		strings.Replace(bare, "1.1", "1.0", 1): false, // the request has a different version
		"X: POST /v1/aa HTTP/1.1\nHost: x\r\n": false,
	} {
		for size := 1; size <= len(text); size++ {
			var l requestLines
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				l.scan([]byte(rest[:min(size, len(rest))]))
			}
			if got := l.endedBare([]byte("POST"), []byte("/v1/a"), []byte("HTTP/1.1")); got != want && (want || size == len(text)) {
				t.Errorf("%q read %d bytes at a time: %v, want %v", text, size, got, want)
			}
		}
	}
}

func TestALineInABodyIsNotMistakenForARequestLine(t *testing.T) {
	var l requestLines
	request := func() bool { return l.endedBare([]byte("POST"), []byte("/v1/a"), []byte("HTTP/1.1")) }
	l.scan([]byte("POST /v1/a HTTP/1.1\r\n\r\n"))
	if request() {
		t.Error("a line that ends in a carriage return and line feed was reported")
	}
	l.scan([]byte("POST /v1/a HTTP/1.1\n"))
	l.endBody()
	if request() {
		t.Error("a line in the previous body was reported")
	}
}
