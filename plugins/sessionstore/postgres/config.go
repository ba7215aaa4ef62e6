package postgres

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ropewalk/ropewalk/plugins"
)

// Config holds the settings of this store.
type Config struct {
	// URL is the address of PostgreSQL, and the only required setting:
	// postgres://user:password@host:5432/database?sslmode=verify-full, or the keyword form "host=/run/postgresql
	// dbname=ropewalk". sslmode, sslrootcert, sslcert, sslkey and pool_max_conns have the same meaning as in libpq and
	// pgx.
	URL plugins.Secret `json:"url"`

	// Password overrides the URL's.
	Password plugins.Secret `json:"password"`

	// Table is the name of the table, optionally with its schema. The default is "ropewalk_sessions". Servers that use
	// the same table share sessions.
	Table string `json:"table"`

	// Timeout is how long connecting and each statement may take before PostgreSQL counts as unavailable. The default
	// is 2s.
	Timeout plugins.Duration `json:"timeout"`

	// PurgeEvery is how often expired rows are deleted. The default is 1m.
	PurgeEvery plugins.Duration `json:"purgeEvery"`
}

func defaults() Config {
	return Config{Table: "ropewalk_sessions", Timeout: plugins.Duration(2 * time.Second), PurgeEvery: plugins.Duration(time.Minute)}
}

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$`)

// Check implements plugins.Checker.
func (c *Config) Check(problems *plugins.ConfigError) {
	if c.URL == "" {
		problems.Add("url", "is missing; set it to something like postgres://user:password@localhost:5432/ropewalk")
	} else if _, err := c.pool(); err != nil {
		problems.Add("url", "%v", err)
	}
	if !tableName.MatchString(c.Table) {
		problems.Add("table", "must be lower-case letters, digits and _, such as ropewalk_sessions or mcp.sessions")
	}
	if c.Timeout <= 0 {
		problems.Add("timeout", "must be a positive duration such as 2s")
	}
	if c.PurgeEvery <= 0 {
		problems.Add("purgeEvery", "must be a positive duration such as 1m")
	}
}

// errURL replaces the library's error, which repeats parts of the URL.
var errURL = errors.New("is not a PostgreSQL URL, or a file it names cannot be read; see postgres://user:password@host:5432/database?sslmode=verify-full")

func (c *Config) pool() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(c.URL.Reveal())
	if err != nil {
		return nil, errURL
	}
	if c.Password != "" {
		config.ConnConfig.Password = c.Password.Reveal()
	}
	config.ConnConfig.ConnectTimeout = time.Duration(c.Timeout)
	return config, nil
}

// identifier returns the table's name as an identifier.
func (c *Config) identifier() pgx.Identifier { return strings.Split(c.Table, ".") }
