package relyingparty

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// body records whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestResponsesAreReadCompletelyOrNotAtAll(t *testing.T) {
	cut := errors.New("cut off")
	for name, c := range map[string]struct {
		status int
		body   io.Reader
		want   string // "" for no error
	}{
		"as long as allowed":        {200, strings.NewReader(strings.Repeat("x", 100)), ""},
		"longer":                    {200, strings.NewReader(strings.Repeat("x", 101)), "https://id.example.com/x is larger than 100 bytes"},
		"cut off":                   {200, io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(cut)), "https://id.example.com/x: cut off"},
		"another successful status": {204, strings.NewReader(""), "https://id.example.com/x returned 204"},
		"a failure":                 {500, strings.NewReader("{}"), "https://id.example.com/x returned 500"},
	} {
		b := &body{Reader: c.body}
		client := &http.Client{Transport: transport(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: b, Request: req}, nil
		})}
		got, err := Fetch(t.Context(), client, "https://id.example.com/x", "", 100)
		if c.want == "" && (err != nil || len(got) != 100) || c.want != "" && (err == nil || err.Error() != c.want || got != nil) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if !b.closed {
			t.Errorf("%s: the response body was not closed", name)
		}
	}
}

func TestInvalidAddressesAreNotRequested(t *testing.T) {
	if got, err := Fetch(t.Context(), http.DefaultClient, "https://[", "", 100); err == nil || got != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
