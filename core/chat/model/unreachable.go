package model

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// hostOf returns the host of an address, without anything that may be secret.
func hostOf(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "the provider"
	}
	return at.Host
}

// errPage means that the response is a web page, because the address is wrong or a proxy wants a person to log in.
var errPage = errors.New("a web page was returned instead of an API response")

// isPermanent reports whether a request failed for a reason that will not go away by itself: an unknown host name, an
// invalid certificate or a web page.
func isPermanent(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound || tlsReason(err) != "" || errors.Is(err, errPage)
}

// reason explains briefly why a request got no response.
func reason(err error) string {
	through := ""
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		through = "the proxy: "
	}
	return through + connectionReason(err)
}

func connectionReason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "DNS has no record for " + dns.Name
		}
		return "DNS did not respond for " + dns.Name
	}
	if text := tlsReason(err); text != "" {
		return "TLS: " + text
	}
	switch {
	case errors.Is(err, errPage):
		return errPage.Error() + "; check the provider's baseUrl"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isClosedUnused(err):
		return "the connection was closed before a response arrived"
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
		return "timeout"
	}
	return "the connection failed"
}

// isClosedUnused reports whether the provider closed the connection before the request was written.
// net/http has no exported error for it.
func isClosedUnused(err error) bool {
	return strings.Contains(err.Error(), "server closed idle connection")
}

func tlsReason(err error) string {
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is not for " + e.Host
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate is signed by an unknown authority"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the server does not use TLS"
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return e.Error()
	}
	return ""
}
