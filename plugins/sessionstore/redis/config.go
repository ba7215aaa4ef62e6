package redis

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// Config is the settings of this store.
type Config struct {
	// URL says where Redis is, and is the only setting that must be there:
	//
	//	redis://user:password@host:6379/0       one server
	//	unix:///run/redis.sock?db=0             one server on a unix socket
	//	redis+cluster://host:6379?addr=host2:6379       a cluster; addr may come again
	//	redis+sentinel://host:26379?master_name=main&addr=host2:26379
	//
	// With rediss instead of redis the connection is TLS. In a sentinel URL, user and password are
	// those of the sentinels.
	URL plugins.Secret `json:"url"`

	// Username and Password are those of a Redis ACL user; they win over the URL's.
	Username string         `json:"username"`
	Password plugins.Secret `json:"password"`

	// KeyPrefix comes before every key; "ropewalk:session:" by default. Servers that share one
	// Redis share sessions when their prefixes are the same.
	KeyPrefix string `json:"keyPrefix"`

	// Timeout is how long each call may take, connecting included, before Redis counts as away; 2s
	// by default.
	Timeout plugins.Duration `json:"timeout"`

	// TLS is for rediss URLs.
	TLS TLS `json:"tls"`
}

// TLS is how to trust a Redis server, and how to be trusted.
type TLS struct {
	CAFile     string `json:"caFile"`     // PEM; the system's roots by default
	CertFile   string `json:"certFile"`   // PEM; a client certificate, with KeyFile
	KeyFile    string `json:"keyFile"`    // PEM
	ServerName string `json:"serverName"` // the name in the server's certificate; the URL's host by default
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

// apply adds the files to what the URL says.
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
