package http

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/internal/hostport"
	"github.com/ropewalk/ropewalk/plugins"
)

// Settings are the settings of this sink.
type Settings struct {
	// URL is where records are posted. It is the only required setting.
	URL string `json:"url"`

	// Token is sent as a bearer token. Empty means none.
	Token plugins.Secret `json:"token"`

	// Headers are sent with every request. Their values are secrets.
	Headers map[string]plugins.Secret `json:"headers"`

	// Timeout is how long the collector may take for one request; the default is 5s.
	Timeout plugins.Duration `json:"timeout"`

	// TLS is used for https URLs.
	TLS TLS `json:"tls"`
}

// TLS configures how to verify the collector, and how to authenticate to it.
type TLS struct {
	CAFile   string `json:"caFile"`   // PEM; default: the system's roots
	CertFile string `json:"certFile"` // PEM; a client certificate, with KeyFile
	KeyFile  string `json:"keyFile"`  // PEM
}

func defaults() Settings { return Settings{Timeout: plugins.Duration(5 * time.Second)} }

// Check implements plugins.Checker.
func (s *Settings) Check(problems *plugins.ConfigError) {
	at, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		problems.Add("url", "is missing; set it to something like https://collector.example.com/audit")
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		problems.Add("url", "must be an address that starts with https:// or http://")
	case hostport.Check(at) != nil:
		problems.Add("url", "%v", hostport.Check(at))
	case at.User != nil:
		problems.Add("url", "must not contain a user name or password; use token or headers")
	case at.Scheme == "http" && s.TLS != (TLS{}):
		problems.Add("tls", "needs a url that starts with https://")
	}
	if s.Timeout <= 0 {
		problems.Add("timeout", "must be a positive duration such as 5s")
	}
	for name, value := range s.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			problems.Add("headers", "has a name that is not a valid header name")
		case !httpguts.ValidHeaderFieldValue(value.Reveal()):
			problems.Add("headers."+name, "must be text without line breaks")
		case s.Token != "" && http.CanonicalHeaderKey(name) == "Authorization":
			problems.Add("headers."+name, "is set by token; keep one of them")
		}
	}
	if !httpguts.ValidHeaderFieldValue(s.Token.Reveal()) {
		problems.Add("token", "must be text without line breaks")
	}
	if _, err := s.TLS.config(); err != nil {
		problems.Add("tls", "%v", err)
	}
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile %s contains no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("certFile goes together with keyFile; set both or neither")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
