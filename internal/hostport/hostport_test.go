package hostport_test

import (
	"net/url"
	"testing"

	"github.com/ropewalk/ropewalk/internal/hostport"
)

func TestTheHostAndThePortOfAnAddressAreChecked(t *testing.T) {
	for address, want := range map[string]string{
		"https://tools.example.com/mcp":  "",
		"https://tools.example.com:8443": "",
		"http://[::1]:80/x":              "",
		"http://[::1]/x":                 "",
		"http://127.0.0.1:":              "has a colon but no port after its host",
		"http://[::1]:/x":                "has a colon but no port after its host",
		"http://:8080/":                  "has no host",
		"https:///x":                     "has no host",
		"http://127.0.0.1:0":             "has a port that is not from 1 to 65535",
		"http://127.0.0.1:65536":         "has a port that is not from 1 to 65535",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := hostport.Check(u); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
