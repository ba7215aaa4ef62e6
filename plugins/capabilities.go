package plugins

import (
	"context"

	"github.com/hashicorp/go-hclog"
)

// The optional capabilities: an implementation has one by having its method, and is never asked for
// one that it does not have. io.Closer is one too: Close is called once, after the last call has
// ended, and has about two seconds.

// Configurer is an implementation that takes settings. Configure is called before any method of the
// contract and makes the implementation ready; after it succeeded it is not called again, after it
// failed it may be. Wrong settings are a *ConfigError, which Config.Decode makes; a required backend
// that cannot be reached is ErrUnavailable. The context ends when Configure returns.
type Configurer interface {
	Configure(ctx context.Context, c Config) error
}

// Validator is an implementation that can check settings without taking them. Validate may be
// called at any time, concurrently with everything else, and changes nothing. It returns the
// *ConfigError that Configure would return.
type Validator interface {
	Validate(ctx context.Context, c Config) error
}

// LoggerUser is an implementation that logs. UseLogger is called once, before Configure. Lines
// arrive in the server's log with their fields.
type LoggerUser interface {
	UseLogger(log hclog.Logger)
}

// Named is an implementation with a name of its own. Without it the name is that of the executable
// without the kind: sessionstore-redis is "redis".
type Named interface {
	Name() string
}

// Versioned is an implementation with a version of its own. Without it the version is that of the
// main module, as the Go build recorded it.
type Versioned interface {
	Version() string
}
