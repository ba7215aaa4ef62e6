package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// How long to wait for something that may be unavailable: a connection including name resolution, a response, and a few
// consecutive requests.
const (
	connectTime = 5 * time.Second
	answerTime  = 10 * time.Second
	patient     = 15 * time.Second
)

func dialer() *net.Dialer { return &net.Dialer{Timeout: connectTime} }

// httpClient returns a client with these limits.
func httpClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer().DialContext, TLSHandshakeTimeout: connectTime, DisableKeepAlives: true}
	return &http.Client{Timeout: answerTime, Transport: transport}
}

func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return httpClient().Do(req)
}

// reason returns why something cannot be reached.
func reason(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case name.IsNotFound:
			return fmt.Sprintf("the name %s has no address", name.Name)
		case name.IsTimeout:
			return fmt.Sprintf("the name %s could not be looked up within %v: no DNS server responds", name.Name, connectTime)
		}
		return fmt.Sprintf("the name %s could not be looked up (%s)", name.Name, name.Err)
	}
	op, isDial := errors.AsType[*net.OpError](err)
	isDial = isDial && op.Op == "dial"
	switch {
	case isDial && op.Timeout():
		return fmt.Sprintf("%v did not accept a connection within %v", op.Addr, connectTime)
	case isDial:
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			return fmt.Sprintf("%v: %v", op.Addr, call.Err)
		}
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Sprintf("no response within %v", answerTime)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}
