package model

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// idleTimeout is how long a provider may be silent in the middle of an answer. Providers send pings.
	idleTimeout = 2 * time.Minute
	// answerLimit limits the size of one answer, in bytes.
	answerLimit = 64 << 20
)

var (
	errIdle  = errors.New("the provider stopped sending in the middle of its answer")
	errLarge = errors.New("the provider's answer is larger than 64 MiB")
)

// NewClient returns the HTTP client for a provider. It never follows redirects, which could leak the key to another
// host. It uses a proxy only for https addresses, so that the proxy sees nothing but the host.
func NewClient(s Settings) *http.Client {
	idle := cmp.Or(s.Idle, idleTimeout)
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Transport: &watched{idle: idle, next: &http.Transport{
			Proxy: tunnel(s.Proxy), DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			ResponseHeaderTimeout: 5 * idle, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func tunnel(proxy func(*url.URL) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if proxy == nil || r.URL.Scheme != "https" {
			return nil, nil
		}
		return proxy(r.URL)
	}
}

// watched is a RoundTripper that limits the size of response bodies and closes those that stay idle.
type watched struct {
	idle time.Duration
	next *http.Transport
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b := &body{ReadCloser: answer.Body, idle: w.idle, left: answerLimit}
	b.timer = time.AfterFunc(w.idle, func() { _ = b.ReadCloser.Close() })
	answer.Body = b
	return answer, nil
}

// CloseIdleConnections closes the connections that no call is using.
func (w *watched) CloseIdleConnections() { w.next.CloseIdleConnections() }

type body struct {
	io.ReadCloser
	idle  time.Duration
	timer *time.Timer
	left  int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, errLarge
	}
	if !b.timer.Stop() && err != nil && !errors.Is(err, io.EOF) {
		return n, errIdle
	}
	b.timer.Reset(b.idle)
	return n, err
}

func (b *body) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
