package model

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAProvidersHTTP500IsAProviderErrorBut429And503And529KeepTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
		want   Failure
	}{
		{500, "", ServerError}, {500, "api_error", ServerError}, {0, "api_error", ServerError}, {501, "", ServerError},
		{529, "", Overloaded}, {529, "overloaded_error", Overloaded}, {503, "", Overloaded}, {502, "", Overloaded},
		{429, "", RateLimited}, {429, "insufficient_quota", Refused}, {401, "", Auth}, {413, "", TooLong}, {400, "", Refused},
	} {
		if got := FromStatus(c.status, http.Header{}, c.kind, "", nil).Failure; got != c.want {
			t.Errorf("status %d, %q gives %d, want %d", c.status, c.kind, got, c.want)
		}
	}
}

func TestTheCauseOfAnUnreachableProviderIsKept(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	closing := listen(t, func(c net.Conn) { _ = c.Close() })
	for name, c := range map[string]struct {
		url, want string
		permanent bool
	}{
		"nobody listens":       {"http://127.0.0.1:1/v1?key=canary", "connection refused", false},
		"no such name":         {"http://canary-user:pw@no-such-host.invalid/v1", "DNS", true},
		"unknown certificate":  {secure.URL, "TLS: the certificate is signed by an unknown authority", true},
		"no TLS":               {strings.Replace(plain.URL, "http:", "https:", 1), "TLS: the server does not speak TLS", true},
		"closed at once":       {"http://" + closing, "the connection was closed before an answer", false},
		"nothing for too long": {"http://" + listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "timeout", false},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 100_000_000}}
			t.Cleanup(client.CloseIdleConnections)
			response, err := client.Get(c.url)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("it was reached")
			}
			known, ok := errors.AsType[*Error](FromBreak(t.Context(), err))
			if !ok || known.Failure != Unreachable || !strings.Contains(known.Message, c.want) || known.Host == "" {
				t.Fatalf("%+v", known)
			}
			if strings.Contains(known.Error(), "canary-user") || strings.Contains(known.Error(), "key=") {
				t.Errorf("secrets in %v", known)
			}
			if c.permanent && known.isTransient() && !strings.Contains(known.Message, "did not answer") {
				t.Errorf("%v would be repeated", known)
			}
		})
	}
}

// listen starts a listener that passes connections to a function, and returns its address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}
