package plugins

import (
	"context"

	"github.com/hashicorp/go-hclog"
)

// The interfaces below are optional capabilities. An implementation has a capability if it has the
// method; Serve detects it. io.Closer is one too: Close is called once, after the last call has returned,
// and must return within about two seconds.

// Configurer is an implementation that has settings. Configure is called before any method of the contract,
// and makes the implementation ready to serve. It is called again only if it failed. It returns a
// *ConfigError for invalid settings (as Config.Decode does), and ErrUnavailable if a required backend cannot
// be reached. The context ends when Configure returns.
type Configurer interface {
	Configure(ctx context.Context, c Config) error
}

// Validator is an implementation that can check settings without using them. Validate may be called at
// any time, concurrently with all other methods, and changes nothing. It returns the *ConfigError that
// Configure would return.
type Validator interface {
	Validate(ctx context.Context, c Config) error
}

// SettingsHolder is an implementation whose settings decode into a struct. NewSettings returns a pointer
// to a new one. Settings are then checked without Validate: unknown names and values of a wrong type
// are problems.
type SettingsHolder interface {
	NewSettings() any
}

// LoggerUser is an implementation that logs. UseLogger is called once, before Configure. The server
// writes the lines, with their fields, to its own log.
type LoggerUser interface {
	UseLogger(log hclog.Logger)
}

// Named is an implementation with its own name. The default is the executable's name without the kind: "redis" for
// sessionstore-redis.
type Named interface {
	Name() string
}

// Versioned is an implementation with its own version. The default is the main module's version, as recorded by the Go
// build.
type Versioned interface {
	Version() string
}

// Exclusive is an implementation whose backend has one writer, such as an embedded database that a process locks. The
// server never lets two processes use the backend at once: a reload waits for the calls of the old process, ends it,
// and configures the new one. New calls wait during that time. The backend must be free again once the process has
// ended, however it ended.
type Exclusive interface {
	// Exclusive does nothing: an implementation has the capability if it has the method.
	Exclusive()
}
