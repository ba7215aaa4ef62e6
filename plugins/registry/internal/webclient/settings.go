package webclient

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/hostport"
	"github.com/ropewalk/ropewalk/plugins"
)

// Settings are the settings common to all web registries.
type Settings struct {
	// URL is the registry's address, without the API version.
	URL string `json:"url"`
	// Token is sent to the registry as a bearer token. Most registries need none.
	Token plugins.Secret `json:"token"`
	// AllowPrivateNetwork allows the registry, and the files it names, to be in a private network.
	AllowPrivateNetwork bool `json:"allowPrivateNetwork"`
	// Timeout is how long one request may take. The default is 10s.
	Timeout plugins.Duration `json:"timeout"`
}

// Defaults returns the default settings of a registry with the given public address.
func Defaults(address string) Settings {
	return Settings{URL: address, Timeout: plugins.Duration(10 * time.Second)}
}

// Check implements plugins.Checker.
func (s *Settings) Check(problems *plugins.ConfigError) {
	if err := CheckURL(s.URL); err != nil {
		problems.Add("url", "%v", err)
	}
	if s.Timeout <= 0 {
		problems.Add("timeout", "must be a positive duration such as 10s")
	}
}

// Adapter is what the adapters of web registries share: the settings, and the client for them.
type Adapter struct {
	PublicURL string  // the default of the url setting
	Client    *Client // nil until Configure
}

// Validate checks settings without applying them.
func (a *Adapter) Validate(_ context.Context, c plugins.Config) error {
	settings := Defaults(a.PublicURL)
	return c.Decode(&settings)
}

// Configure applies the settings. It does not contact the registry, because one that is unavailable now may be back
// later.
func (a *Adapter) Configure(_ context.Context, c plugins.Config) (err error) {
	s := Defaults(a.PublicURL)
	if err := c.Decode(&s); err != nil {
		return err
	}
	a.Client, err = New(Options{URL: s.URL, Token: s.Token, Private: s.AllowPrivateNetwork, Timeout: time.Duration(s.Timeout)})
	return err
}

// Close closes idle connections.
func (a *Adapter) Close() error {
	if a.Client != nil {
		a.Client.Close()
	}
	return nil
}

// CheckURL returns an error if a registry's address is not acceptable. It must be an absolute https URL without user,
// query or fragment. http is allowed only on loopback.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("must be an absolute URL such as https://registry.example.com")
	case hostport.Check(u) != nil:
		return hostport.Check(u)
	case u.User != nil:
		return errors.New("must not contain a user name or password; use token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must not have a query or a fragment")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must be an https URL (http is for loopback addresses only)")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
