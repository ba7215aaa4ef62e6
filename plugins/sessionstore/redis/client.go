package redis

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func errNoCertificate(file string) error { return fmt.Errorf("%s contains no PEM certificate", file) }

// errURL replaces the library's errors, which repeat the URL and thus the password.
var errURL = errors.New("is not a Redis URL; see redis://user:password@host:6379/0, redis+cluster://host:6379?addr=host2:6379, " +
	"redis+sentinel://host:26379?master_name=main and unix:///path; rediss is TLS")

// options parses the URL into options that cover all three topologies.
func (c *Config) options() (*redis.UniversalOptions, error) {
	raw := c.URL.Reveal()
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errURL
	}
	// Reading from replicas is not an option, because replicas may lack sessions that were just written.
	parameters := []string{"addr", "db", "master_name", "password", "pool_size", "username"}
	for name := range u.Query() {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("has the parameter %q, which is not one of %s; timeout and tls are separate settings", name, strings.Join(parameters, ", "))
		}
	}
	base, topology, _ := strings.Cut(u.Scheme, "+")
	u.Scheme = base
	switch topology {
	case "":
		return single(u)
	case "cluster":
		return cluster(u)
	case "sentinel":
		return sentinel(u)
	}
	return nil, errURL
}

func single(u *url.URL) (*redis.UniversalOptions, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errURL
	}
	addr := o.Addr
	if o.Network == "unix" && !strings.HasPrefix(addr, "/") {
		return nil, errURL
	}
	return &redis.UniversalOptions{Addrs: []string{addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, PoolSize: o.PoolSize}, nil
}

func cluster(u *url.URL) (*redis.UniversalOptions, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return nil, errURL
	}
	return &redis.UniversalOptions{Addrs: o.Addrs, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, PoolSize: o.PoolSize, IsClusterMode: true}, nil
}

func sentinel(u *url.URL) (*redis.UniversalOptions, error) {
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, errURL
	}
	if o.MasterName == "" {
		return nil, errors.New("needs master_name=..., the name under which the sentinels watch the server")
	}
	return &redis.UniversalOptions{
		Addrs: o.SentinelAddrs, MasterName: o.MasterName, DB: o.DB, TLSConfig: o.TLSConfig, PoolSize: o.PoolSize,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword, Username: o.Username, Password: o.Password,
	}, nil
}

// connect creates the client. It does not dial yet. All of the client's waits are bounded, so that an unavailable Redis
// is noticed within about one timeout and not only after the library's many retries.
func (c *Config) connect() (redis.UniversalClient, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	if o.TLSConfig != nil {
		if len(o.Addrs) > 1 || o.IsClusterMode || o.MasterName != "" {
			o.TLSConfig.ServerName = "" // each node's certificate is for its own host
		}
		if err := c.TLS.apply(o.TLSConfig); err != nil {
			return nil, err
		}
	}
	if c.Username != "" {
		o.Username = c.Username
	}
	if c.Password != "" {
		o.Password = c.Password.Reveal()
	}
	timeout := time.Duration(c.Timeout)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 1, 10*time.Millisecond, 50*time.Millisecond
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(o), nil
}
