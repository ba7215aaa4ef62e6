package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// ManifestName is the file that makes a directory or an archive a bundle.
const ManifestName = "manifest.json"

// maxManifest limits the size of a manifest; the largest published ones are about 100 KiB.
const maxManifest = 4 << 20

// Manifest is the part of an MCPB manifest that the server needs. Raw is the whole document, byte for byte,
// including keys that this type does not have.
type Manifest struct {
	Raw             json.RawMessage            `json:"-"`
	ManifestVersion string                     `json:"manifest_version"`
	DXTVersion      string                     `json:"dxt_version"`
	Name            string                     `json:"name"`
	DisplayName     string                     `json:"display_name"`
	Version         string                     `json:"version"`
	Description     string                     `json:"description"`
	Icon            string                     `json:"icon"`
	Author          Author                     `json:"author"`
	Server          Server                     `json:"server"`
	Compatibility   Compatibility              `json:"compatibility"`
	UserConfig      map[string]Field           `json:"user_config"`
	Meta            map[string]json.RawMessage `json:"_meta"`
}

// Author is the author of a bundle.
type Author struct {
	Name string `json:"name"`
}

// ServerType is the runtime of a bundle's server.
type ServerType string

// The server types of MCPB 0.4.
const (
	TypeNode   ServerType = "node"
	TypePython ServerType = "python"
	TypeBinary ServerType = "binary"
	TypeUV     ServerType = "uv"
)

// Server describes how to start a bundle's server. If MCPConfig is nil, its entry point is run.
type Server struct {
	Type       ServerType `json:"type"`
	EntryPoint string     `json:"entry_point"`
	MCPConfig  *MCPConfig `json:"mcp_config"`
}

// MCPConfig is the command of a server, before its variables are expanded.
type MCPConfig struct {
	Command           string                 `json:"command"`
	Args              []string               `json:"args"`
	Dir               string                 `json:"cwd"` // not in the specification; "" for the bundle's directory
	Env               map[string]string      `json:"env"`
	PlatformOverrides map[string]CommandPart `json:"platform_overrides"`
}

// CommandPart overrides parts of a command on one platform: command, args and cwd as a whole, env by name.
type CommandPart struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Dir     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
}

// Compatibility describes where a bundle runs. An empty list of platforms means everywhere; a runtime's value is a
// semver range.
type Compatibility struct {
	Platforms []string          `json:"platforms"`
	Runtimes  map[string]string `json:"runtimes"`
}

// Problem is one thing that is wrong with a manifest.
type Problem struct {
	Field string // such as "server.mcp_config.command"; "" for the document itself
	Text  string
}

// ManifestError lists everything that is wrong with a manifest.
type ManifestError struct{ Problems []Problem }

func (e *ManifestError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Text
		if p.Field != "" {
			parts[i] = p.Field + ": " + p.Text
		}
	}
	return ManifestName + ": " + strings.Join(parts, "; ")
}

// ParseManifest parses and checks a manifest. All problems are returned at once as a *ManifestError; a value of the
// wrong JSON type is reported alone. It is strict about the fields it uses and lenient about all others. MCPB's own
// validator rejects unknown top-level keys, but a bundle that runs elsewhere should not fail here because of a key
// that the server never looks at.
func ParseManifest(raw []byte) (*Manifest, error) {
	if len(raw) > maxManifest {
		return nil, &ManifestError{[]Problem{{"", fmt.Sprintf("is larger than %d bytes", maxManifest)}}}
	}
	m := &Manifest{Raw: append(json.RawMessage(nil), raw...)}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, &ManifestError{[]Problem{decodeProblem(err)}}
	}
	var given struct {
		Description *string `json:"description"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, &ManifestError{[]Problem{decodeProblem(err)}}
	}
	if problems := m.check(given.Description != nil); len(problems) > 0 {
		return nil, &ManifestError{problems}
	}
	return m, nil
}

func decodeProblem(err error) Problem {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Problem{t.Field, fmt.Sprintf("is a JSON %s; it must be %s", t.Value, wanted(t.Type))}
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Problem{"", fmt.Sprintf("is not JSON: %v at byte %d", s, s.Offset)}
	}
	return Problem{"", err.Error()}
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "a string"
	}
}

// ReadDir reads the manifest in a bundle directory. The error wraps fs.ErrNotExist if there is none.
func ReadDir(dir string) (*Manifest, error) {
	f, err := openRegular(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not contain a %s, so it is not a bundle directory: %w", dir, ManifestName, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readManifest(f)
}

func readManifest(r io.Reader) (*Manifest, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ManifestName, err)
	}
	// If two members have the same name, another program could use the other one.
	if err := rawjson.CheckUnique(raw); errors.Is(err, rawjson.ErrDuplicate) {
		return nil, &ManifestError{[]Problem{{"", err.Error()}}}
	}
	return ParseManifest(raw)
}
