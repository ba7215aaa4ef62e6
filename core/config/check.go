package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

const (
	minKey  = 8  // shorter API keys prevent the start
	safeKey = 16 // shorter API keys cause a warning
)

// check finds what a schema cannot express: values that contradict each other, and formats that need parsing.
// It adds to the layer's problems, and fills in the parsed values.
type check struct {
	cfg      *Config
	doc      document
	schema   *schema.Schema
	expanded map[string]bool // as in layer
	problems Problems
}

func (k *check) run() Problems {
	k.checkKey()
	k.checkHTTP()
	k.checkDevMode()
	k.checkAuth()
	k.checkPlugins("sessionstore", []Plugin{k.cfg.SessionStore}, []any{k.doc.SessionStore})
	k.checkPlugins("registry", k.cfg.Registries, k.doc.Registries)
	k.checkApps()
	k.checkViews()
	k.checkSandbox("sandbox", &k.doc.Sandbox)
	k.checkAudit()
	k.checkStorageKeys()
	k.checkInstall()
	k.checkPluginKeys()
	k.checkModels()
	k.checkSkills()
	return k.problems
}

// add reports a problem at a path, unless a value there, or one that it depends on, was already rejected. In that case,
// the value seen here is not the one that was written.
func (k *check) add(path, format string, args ...any) {
	k.addUnless(path, nil, format, args...)
}

func (k *check) addUnless(path string, depends []string, format string, args ...any) {
	for _, p := range append(depends, path) {
		if k.rejected(p) {
			return
		}
	}
	k.problems = append(k.problems, k.cfg.Problem(path, fmt.Sprintf(format, args...)))
}

// rejected reports whether the path, or something that contains it, has a problem.
func (k *check) rejected(path string) bool {
	for ; path != ""; path = layer.Parent(path) {
		if slices.ContainsFunc(k.problems, func(p Problem) bool { return p.Path == path }) {
			return true
		}
	}
	return false
}

// shown quotes a value for use in a problem, unless it came from the environment, in which case it may be a secret.
func (k *check) shown(path, value string) string {
	if k.expanded[path] {
		return "of that name"
	}
	return strconv.Quote(value)
}

func (k *check) warn(format string, args ...any) {
	k.cfg.Warnings = append(k.cfg.Warnings, fmt.Sprintf(format, args...))
}

func (k *check) checkKey() {
	if key, given := k.cfg.Environment[EnvAPIKey]; given && key == "" {
		k.warn("%s is empty and is treated as unset", EnvAPIKey)
	}
	_, set := k.cfg.places["apiKey"]
	key := k.cfg.APIKey.Reveal()
	switch n := len([]rune(key)); {
	case !set:
	case n < minKey:
		k.add("apiKey", "must have at least %d characters; omit it for dev mode", minKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		k.add("apiKey", "must be printable ASCII without spaces, because it is sent in a header")
	case n < safeKey:
		k.warn("the API key has only %d characters; use %d or more", n, safeKey)
	}
}

// checkSkills warns about directories that do not exist. They may be created later.
func (k *check) checkSkills() {
	for i, dir := range k.cfg.Skills.Directories {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			k.warn("skills.directories[%d]: %s is not a directory; no skills are read from it", i, dir)
		}
	}
}

// checkViews checks the rules of the declared views.
func (k *check) checkViews() {
	for _, v := range k.cfg.Views {
		if _, err := view.New(v.View); err != nil {
			k.add(layer.Join("views", v.Name), "%v", err)
		}
	}
}

// checkStorageKeys rejects several sources of keys, because it would be unclear which one to encrypt with.
func (k *check) checkStorageKeys() {
	s := k.doc.Storage
	switch {
	case s.KeyFile != "" && len(s.KeyCommand) > 0:
		k.add("storage.keyCommand", "storage.keyFile is also set; remove one of them")
	case s.Key != "" && s.KeyFile != "":
		k.add("storage.keyFile", "storage.key (%s) is also set; remove one of them", EnvStorageKey)
	case s.Key != "" && len(s.KeyCommand) > 0:
		k.add("storage.keyCommand", "storage.key (%s) is also set; remove one of them", EnvStorageKey)
	}
}

func (k *check) checkDevMode() {
	if !k.cfg.Dev() || Loopback(k.cfg.HTTP.Host) {
		return
	}
	k.addUnless("http.host", []string{"apiKey", "auth.adapter"},
		"a server in dev mode (neither %s nor auth.adapter is set) can listen only on loopback; set one of them, or listen on 127.0.0.1", EnvAPIKey)
}

// checkPlugins checks the sections for the adapters of a kind: their keys, whether the adapters exist,
// and that each has a unique name.
func (k *check) checkPlugins(kind string, all []Plugin, sections []any) {
	first := map[string]string{} // the path by name
	for i, p := range all {
		keys, _ := sections[i].(map[string]any)
		k.checkPlugin(kind, p, keys)
		other, twice := first[p.Name]
		if path := layer.Join(p.At, "name"); twice && p.Name != "" {
			k.add(path, "%s is already the name of %s; give one of them another name", k.shown(path, p.Name), other)
		} else {
			first[p.Name] = p.At
		}
	}
}

func (k *check) checkPlugin(kind string, p Plugin, section map[string]any) {
	for key := range section {
		for _, name := range schema.Known(k.schema.Section(kind)) {
			if key != name && strings.EqualFold(key, name) {
				k.add(layer.Join(p.At, key), "unknown key; did you mean %s?", name)
			}
		}
	}
	names := k.schema.Builtins(kind)
	if p.Adapter == "" || p.Path != "" || len(names) == 0 || slices.Contains(names, p.Adapter) {
		return
	}
	installed := filepath.Join(k.cfg.Home, "plugins", kind+"-"+p.Adapter)
	if _, err := os.Stat(installed); err == nil {
		return
	}
	path := p.At
	if section != nil {
		path = layer.Join(p.At, "adapter")
	}
	k.addUnless(path, []string{layer.Join(p.At, "path"), layer.Join(p.At, "sha256")},
		"there is no built-in adapter %s, and no plugin of that name in %s%s", k.shown(path, p.Adapter), filepath.Dir(installed), schema.Nearest(p.Adapter, names))
}

func (k *check) checkPluginKeys() {
	if k.cfg.Plugins.RequireSignature && len(k.cfg.Plugins.TrustedKeys) == 0 {
		k.addUnless("plugins.requireSignature", []string{"plugins.trustedKeys"}, "requires plugins.trustedKeys, because no signature can be verified without a key")
	}
}
