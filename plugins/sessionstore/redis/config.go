package redis

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// Config holds the settings of this store.
type Config struct {
	// URL is the address of Redis, and the only required setting:
	//
	//	redis://user:password@host:6379/0       one server
	//	unix:///run/redis.sock?db=0             one server on a unix socket
	//	redis+cluster://host:6379?addr=host2:6379       a cluster; addr may be repeated
	//	redis+sentinel://host:26379?master_name=main&addr=host2:26379
	//
	// With rediss instead of redis, the connection uses TLS. In a sentinel URL, the user and password are for the
	// sentinels.
	URL plugins.Secret `json:"url"`

	// Username and Password belong to a Redis ACL user. They override the URL's.
	Username string         `json:"username"`
	Password plugins.Secret `json:"password"`

	// KeyPrefix is the prefix of every key, "ropewalk:session:" by default. Servers that use the same Redis share
	// sessions if they have the same prefix.
	KeyPrefix string `json:"keyPrefix"`

	// Timeout is how long each call may take, including connecting, before Redis counts as unavailable. The default is
	// 2s.
	Timeout plugins.Duration `json:"timeout"`

	// TLS is for rediss URLs.
	TLS TLS `json:"tls"`
}

// TLS configures how to verify a Redis server, and the client certificate to send.
type TLS struct {
	CAFile     string `json:"caFile"`     // PEM; by default the system's roots
	CertFile   string `json:"certFile"`   // PEM; a client certificate, with KeyFile
	KeyFile    string `json:"keyFile"`    // PEM
	ServerName string `json:"serverName"` // the name in the server's certificate; by default the URL's host
}

func defaults() Config {
	return Config{KeyPrefix: "ropewalk:session:", Timeout: plugins.Duration(2 * time.Second)}
}

// Check implements plugins.Checker.
func (c *Config) Check(problems *plugins.ConfigError) {
	if c.URL == "" {
		problems.Add("url", "is missing; set it to something like redis://localhost:6379/0")
	} else if o, err := c.options(); err != nil {
		problems.Add("url", "%v", err)
	} else if o.TLSConfig == nil && c.TLS != (TLS{}) {
		problems.Add("tls", "needs a rediss url; the url given is not encrypted")
	}
	if c.KeyPrefix == "" {
		problems.Add("keyPrefix", "must not be empty; leave it out to get ropewalk:session:")
	}
	if c.Timeout <= 0 {
		problems.Add("timeout", "must be a positive duration such as 2s")
	}
	c.TLS.check(problems)
}

func (t TLS) check(problems *plugins.ConfigError) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		problems.Add("tls.certFile", "goes together with tls.keyFile; set both or neither")
		return
	}
	if err := t.apply(&tls.Config{}); err != nil {
		problems.Add("tls", "%v", err)
	}
}

// apply adds these settings to the TLS configuration from the URL.
func (t TLS) apply(config *tls.Config) error {
	config.MinVersion = tls.VersionTLS12
	if t.ServerName != "" {
		config.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return errNoCertificate(t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}
