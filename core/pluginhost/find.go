package pluginhost

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
)

// target is the executable or constructor that an adapter refers to.
type target struct {
	kind   plugins.Kind
	name   string // the adapter's name
	label  string // its name in the configuration
	path   string // "" for a built-in
	kept   string // the copy to start; path if there is none
	sha256 string // the expected hash of the file; "" for a built-in
	pinned bool   // sha256 is not configured: the first use records it
	impl   func() plugins.Plugin
	config config.Plugin
}

var adapterName = regexp.MustCompile(`^[a-z0-9-]+$`)

// find resolves an adapter: an explicit path with its sha256 takes precedence, then a built-in of that name, then
// <home>/plugins/<kind>-<name>. PATH is never searched.
func (h *Host) find(kind plugins.Kind, p config.Plugin) (target, error) {
	t := target{kind: kind, name: p.Adapter, label: cmp.Or(p.Name, p.Adapter), config: p}
	if !adapterName.MatchString(p.Adapter) {
		return t, &StartError{Kind: kind, Name: p.Adapter, Reason: "this is not a valid adapter name", Advice: "names consist of a-z, 0-9 and -"}
	}
	if p.Path != "" {
		t.path, t.sha256 = p.Path, p.SHA256
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return t, t.failed("there is no such file", "correct the path in the configuration")
		}
		return t, t.checkFile()
	}
	if builtin, ok := h.opts.Builtins[kind][p.Adapter]; ok {
		if kind == plugins.KindSessionStore && p.Adapter == InProcess {
			t.impl = builtin
		}
		return t, nil
	}
	t.path = filepath.Join(h.opts.Home, "plugins", fmt.Sprintf("%s-%s", kind, p.Adapter))
	if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
		return t, &StartError{
			Kind: kind, Name: p.Adapter, Path: t.path, Reason: "there is no such plugin",
			Advice: fmt.Sprintf("put its executable there, or use a built-in: %s", strings.Join(slices.Sorted(maps.Keys(h.opts.Builtins[kind])), ", ")),
		}
	}
	if err := t.checkFile(); err != nil {
		return t, err
	}
	if t.sha256 = p.SHA256; t.sha256 != "" {
		return t, nil
	}
	sum, record, err := h.lockFile().verified(t.path)
	if err != nil {
		return t, t.failed(err.Error(), "see `ropewalk plugin verify`")
	}
	if h.opts.RequireSignature && !slices.Contains(h.opts.TrustedKeys, record.Signer) {
		return t, t.failed("it is not signed with a key from plugins.trustedKeys, and plugins.requireSignature is set",
			"install it with `ropewalk plugin install`, or specify its path and sha256 in the configuration")
	}
	t.sha256, t.pinned = sum, true
	return t, nil
}

func (h *Host) lockFile() LockFile { return LockFile{Home: h.opts.Home} }

// checkFile returns an error if an untrusted user could replace the plugin's file.
func (t target) checkFile() error {
	if err := checkOwnership(t.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t.failed(err.Error(), "")
	}
	return nil
}

// HashFile returns the SHA-256 of a file in lower-case hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Configured is an adapter named in a configuration.
type Configured struct {
	config.Plugin
	Kind plugins.Kind
}

// AllConfigured returns every adapter named in the configuration.
func AllConfigured(c *config.Config) []Configured {
	var all []Configured
	for _, a := range c.Auth {
		all = append(all, Configured{a.Plugin, plugins.KindAuth})
	}
	all = append(all, Configured{c.SessionStore, plugins.KindSessionStore})
	for _, r := range c.Registries {
		all = append(all, Configured{r, plugins.KindRegistry})
	}
	for _, sink := range c.Audit.Sinks {
		all = append(all, Configured{sink, plugins.KindAudit})
	}
	return all
}
