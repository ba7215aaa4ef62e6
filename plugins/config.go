package plugins

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Config is the argument of Configure and Validate.
type Config struct {
	JSON    json.RawMessage // the settings as a JSON object; empty means {}
	DataDir string          // a directory for this plugin only, mode 0700; "" if there is none

	HostVersion      string   // the version of the server, "" if it did not send one
	HostCapabilities []string // what the server uses beyond the basic contract
}

// Directory returns DataDir, or a *ConfigError if there is none. A plugin that keeps files calls it in Configure.
func (c Config) Directory() (string, error) {
	if c.DataDir == "" {
		return "", &ConfigError{Problems: []Problem{{Message: "the server has no directory for this plugin: its home must be writable"}}}
	}
	return c.DataDir, nil
}

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Path    string // "url", "tls.caFile", "roles[2].name"; "" for the settings as a whole
	Message string // what is wrong and what to do; it never repeats a value
	Nearest string // for an unknown setting, the nearest one that exists
}

func (p Problem) String() string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Nearest != "" {
		text += fmt.Sprintf(" (did you mean %q?)", p.Nearest)
	}
	return text
}

// ConfigError lists all problems with the settings. The server receives all of them. errors.Is(err,
// ErrInvalid) is true for it.
type ConfigError struct {
	Problems []Problem
}

// Add adds a problem. The message says what is wrong and what to do. It must not contain the value of a secret.
func (e *ConfigError) Add(path, format string, args ...any) {
	e.Problems = append(e.Problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Err returns e, or nil if there are no problems.
func (e *ConfigError) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "settings are not valid: " + strings.Join(lines, "; ")
}

// Is makes a ConfigError an ErrInvalid.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalid }

// Duration is a setting such as "30s" or "5m".
type Duration time.Duration

// UnmarshalText reads the format of time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration such as 30s or 5m")
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText writes the format that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Secret is a setting that must not reach a log or an error. Printing or marshaling it gives
// "[redacted]"; only Reveal returns the value.
type Secret string

const redacted = "[redacted]"

// Reveal returns the value. Call it only where the value is used.
func (s Secret) Reveal() string { return string(s) }

func (Secret) String() string { return redacted }

// Format redacts the value for every verb, including %#v and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText redacts the value in JSON and as a map key.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
