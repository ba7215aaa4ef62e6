package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The environment variables that the server itself reads.
const (
	EnvAPIKey         = "SERVICE_API_KEY"
	EnvAllowedOrigins = "ALLOWED_ORIGINS" // comma-separated
	EnvMaxSessions    = "MCP_MAX_SESSIONS"
	EnvSessionTTL     = "MCP_SESSION_TTL_SECONDS"
	EnvHome           = "ROPEWALK_HOME"
	EnvWorkOSKey      = "WORKOS_API_KEY"
	EnvAnthropicKey   = "ANTHROPIC_API_KEY"
	EnvOpenAIKey      = "OPENAI_API_KEY"
	EnvAnthropicURL   = "ANTHROPIC_BASE_URL"
	EnvOpenAIURL      = "OPENAI_BASE_URL"
	EnvStorageURL     = "ROPEWALK_STORAGE_URL"
	EnvStorageKey     = "ROPEWALK_STORAGE_KEY"
)

// Environment is a set of environment variables. Printing it shows only how many there are.
type Environment map[string]string

// HostEnvironment returns the environment of this process.
func HostEnvironment() Environment {
	e := make(Environment)
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			e[name] = value
		}
	}
	return e
}

func (e Environment) String() string { return fmt.Sprintf("[%d environment variables]", len(e)) }

// Format implements fmt.Formatter for every verb.
func (e Environment) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.String())) }

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use.
func (e Environment) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Only returns the named variables that are set.
func (e Environment) Only(names ...string) Environment {
	out := make(Environment, len(names))
	for _, n := range names {
		if v, ok := e[n]; ok {
			out[n] = v
		}
	}
	return out
}

// LookPath finds an executable in the directories of PATH, as a shell does; a name with a slash is used as is. It
// skips relative directories in PATH. The error is fs.ErrNotExist if there is none.
func (e Environment) LookPath(file string) (string, error) {
	if strings.ContainsRune(file, filepath.Separator) {
		return file, executable(file)
	}
	for _, dir := range filepath.SplitList(e["PATH"]) {
		path := filepath.Join(dir, file)
		if filepath.IsAbs(dir) && executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in any directory of PATH: %w", file, fs.ErrNotExist)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "execute", Path: path, Err: errors.New("not an executable file")}
	}
	return nil
}
