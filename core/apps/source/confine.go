package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// These are the minimum limits of a package manager and everything that it starts. The configuration of the app's
// sandbox can raise them.
const (
	installerMemory    = 2 << 30 // bytes
	installerProcesses = 256
)

// confine returns the sandbox profile for a package manager, and changes env to match. It returns nil if there is no
// sandbox.
//
// The sandbox is needed because a package manager reads the contents of packages and follows the addresses in them. It
// may read the machine's programs, its own settings and the files that the settings name. It may write to its own
// directories and its cache. It may reach other machines; on this machine, it may reach only the registries and proxies
// that the settings name. The configuration of the app's sandbox can allow more.
func (r *Resolver) confine(p program, path string, env map[string]string) (*sandbox.Profile, error) {
	if r.Sandbox == nil || p.trusted {
		return nil, nil
	}
	configured := r.Sandbox(p.record.Workspace, p.record.Name)
	level := r.Confinement.Level(configured)
	if level == sandbox.LevelNone {
		return nil, nil
	}
	settings := r.installerSettings(env, managerOf(path))
	if err := settings.checkReadable(level); err != nil {
		return nil, err
	}
	cache := LayoutOf(r.Home, p.record.Workspace).InstallerCache()
	if p.scripts {
		// Programs from packages get their own home and cache, because nothing that they write may be reused.
		setDefault(env, "npm_config_userconfig", filepath.Join(env["HOME"], ".npmrc"))
		env["HOME"] = p.tmp
		for name := range cacheSettings() {
			removeSetting(env, name)
		}
		settings.files = append(settings.files, "/etc/gitconfig")
		cache = filepath.Join(p.tmp, "cache")
	}
	caches := moveCaches(env, cache)
	for _, dir := range caches {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the package managers' cache: %w", err)
		}
	}
	pythons, _ := lookupSetting(env, "UV_PYTHON_INSTALL_DIR")
	runtimes := []string{cmp.Or(pythons, filepath.Join(env["HOME"], ".local", "share", "uv", "python"))}
	search, protected := filepath.SplitList(env["PATH"]), []string{r.Home, r.HostEnv["HOME"]}
	for _, program := range []string{path, filepath.Join(p.dir, "venv", "bin", "python")} {
		runtimes = append(runtimes, sandbox.RuntimePaths(program, search, protected)...)
	}
	runtimes = append(runtimes, sandbox.SearchPathPrograms(search, protected)...)
	runtimes = slices.DeleteFunc(runtimes, func(path string) bool { return instance.Within(path, p.dir) }) // p.dir is writable
	network := sandbox.Network{Mode: sandbox.NetworkLoopbackOff, Also: settings.destinations()}
	if configured.Network.Mode == sandbox.NetworkAll {
		network = configured.Network
	}
	var taken []int
	if r.Confinement.Ports != nil {
		taken = r.Confinement.Ports()
	}
	return &sandbox.Profile{
		Level: level, Metadata: true, Taken: taken,
		Read:    slices.Concat(sandbox.SystemPaths(), runtimes, settings.files, settings.paths(), configured.Read),
		Write:   slices.Concat([]string{p.dir, p.tmp}, caches),
		Hide:    append([]string{r.Confinement.Home}, r.Confinement.Hide...),
		Network: network,
		Limits: sandbox.Limits{
			Memory: raised(installerMemory, configured.Limits.Memory), Processes: raised(installerProcesses, configured.Limits.Processes),
			OpenFiles: configured.Limits.OpenFiles, FileSize: configured.Limits.FileSize,
		},
	}, nil
}

// raised returns the limit that applies: the configured one if it is higher, or 0 (no limit) if that is configured.
func raised[T int | int64](least, configured T) T {
	if configured == 0 {
		return 0
	}
	return max(least, configured)
}

// cacheSettings maps the environment variables that set the cache directories of package managers to the directory
// names used here.
func cacheSettings() map[string]string {
	return map[string]string{"npm_config_cache": "npm", "npm_config_devdir": "node-gyp", "UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip"}
}

// moveCaches sets the cache directories and returns all of them. If env contains no usable directory, the cache is
// placed in dir.
func moveCaches(env map[string]string, dir string) (caches []string) {
	for name, base := range cacheSettings() {
		if set, ok := lookupSetting(env, name); ok {
			removeSetting(env, name)
			if set = expand(set, env); isOwned(set) {
				env[name] = set
			}
		}
		caches = append(caches, setDefault(env, name, filepath.Join(dir, base)))
	}
	return caches
}

// isOwned reports whether a path is absolute and the server's user may write there in a sandbox. In a sandbox, root has
// no rights to other users' files. A path that does not exist counts as owned.
func isOwned(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	return err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}

// expand replaces what npm expands in its settings: variables, and ~ for the home.
func expand(value string, env map[string]string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = filepath.Join(env["HOME"], rest)
	}
	return variable.ReplaceAllStringFunc(value, func(name string) string {
		if set, ok := env[name[2:len(name)-1]]; ok {
			return set
		}
		return name
	})
}

var variable = regexp.MustCompile(`\$\{[^}]*\}`)

func removeSetting(env map[string]string, name string) {
	maps.DeleteFunc(env, func(other, _ string) bool { return strings.EqualFold(other, name) })
}

// setDefault sets an environment variable unless it is already set under the same name in upper or lower case. It
// returns the value in effect.
func setDefault(env map[string]string, name, value string) string {
	if set, ok := lookupSetting(env, name); ok {
		return set
	}
	env[name] = value
	return value
}

// lookupSetting returns the value of a variable that is set and not empty. It ignores the case of the name, as npm
// does.
func lookupSetting(env map[string]string, name string) (string, bool) {
	for other, value := range env {
		if value != "" && strings.EqualFold(other, name) {
			return value, true
		}
	}
	return "", false
}

// settings are the operator's settings for a package manager.
type settings struct {
	home  string   // the server's home; directories that contain it are never opened
	files []string // the files that the settings are read from
	texts []string // assignments, one per entry, with variables and the home expanded
}

// maxSettings is the maximum size in bytes of a settings file. Larger files are ignored.
const maxSettings = 1 << 20

// settingsFiles returns the files in which a package manager looks for its settings, and the environment variables
// that name other files.
func settingsFiles(manager string, env map[string]string) (files, named []string) {
	home := func(names ...string) {
		for _, name := range names {
			files = append(files, filepath.Join(env["HOME"], name))
		}
	}
	switch manager {
	case "npm":
		home(".npmrc")
		files = append(files, "/etc/npmrc")
		for _, dir := range filepath.SplitList(env["PATH"]) {
			files = append(files, filepath.Join(filepath.Dir(dir), "etc", "npmrc"))
		}
		return files, []string{"npm_config_userconfig", "npm_config_globalconfig"}
	case "uv":
		home(".netrc", ".config/uv/uv.toml", ".local/share/uv/credentials/credentials.toml")
		return append(files, "/etc/uv/uv.toml", "/etc/xdg/uv/uv.toml"), []string{"UV_CONFIG_FILE"}
	default:
		home(".netrc", ".pip/pip.conf", ".config/pip/pip.conf")
		return append(files, "/etc/pip.conf", "/etc/xdg/pip/pip.conf"), []string{"PIP_CONFIG_FILE"}
	}
}

// installerSettings collects the settings of a package manager from environment variables and from the files that it
// reads.
func (r *Resolver) installerSettings(env map[string]string, manager string) settings {
	s := settings{home: r.Home}
	files, named := settingsFiles(manager, env)
	for name, value := range env {
		if isInstallerSetting(name, manager) || strings.HasPrefix(name, "SSL_CERT_") || name == "NODE_EXTRA_CA_CERTS" {
			s.texts = append(s.texts, name+"="+value)
		}
	}
	for _, name := range named {
		if file, ok := lookupSetting(env, name); ok {
			files = append(files, expand(file, env))
		}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !filepath.IsAbs(file) || !info.Mode().IsRegular() || info.Size() > maxSettings {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the package manager cannot read it either
		}
		s.files = append(s.files, file)
		s.texts = append(s.texts, strings.Split(continued.ReplaceAllString(comment.ReplaceAllString(string(raw), ""), " "), "\n")...)
	}
	for i, text := range s.texts {
		name, value, _ := strings.Cut(text, "=")
		s.texts[i] = name + "=" + expand(strings.Trim(value, " \t\r\"'"), env)
	}
	return s
}

// checkReadable returns an error for settings that the package manager could not read in its sandbox. Without them, the
// package manager would continue and might use a different registry from the one the operator configured.
func (s settings) checkReadable(level sandbox.Level) error {
	for _, file := range s.files {
		paths := []string{file}
		if level < sandbox.LevelNamespaces { // with namespaces, the parent directories belong to the sandbox
			for dir := filepath.Dir(file); dir != "/"; dir = filepath.Dir(dir) {
				paths = append(paths, dir)
			}
		}
		for i, path := range paths {
			wanted := os.FileMode(0o4)
			if i > 0 {
				wanted = 0o1
			}
			if !isPermitted(path, wanted) {
				return fmt.Errorf("%s contains package manager settings that cannot be read in the sandbox, where root has no rights over other users' files: "+
					"make the server's user the owner of %s, or set sandbox.level: none for the app", file, path)
			}
		}
	}
	return nil
}

// isPermitted reports whether the mode of a path alone gives the server's user a permission. Only the user's primary
// group is considered.
func isPermitted(path string, wanted os.FileMode) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case stat.Uid == uint32(os.Geteuid()):
		return mode>>6&wanted == wanted
	case stat.Gid == uint32(os.Getegid()):
		return mode>>3&wanted == wanted
	default:
		return mode&wanted == wanted
	}
}

// comment matches a line that is a comment.
var comment = regexp.MustCompile(`(?m)^[ \t]*[#;].*$`)

// continued matches a line break followed by indentation, which continues the setting.
var continued = regexp.MustCompile(`\n[ \t]+`)

// address matches an absolute URL in a setting.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>,;|]+`)

// bareProxy matches the assignment of a proxy address without a scheme.
var bareProxy = regexp.MustCompile(`(?i)(?:^|https?[_-]|all[_-]|config_|pip_)proxy["']?\s*=\s*["']?([^\s"'/=]+:[0-9]+)/?["']?\s*$`)

// destinations returns the hosts and ports that the settings name, as host:port.
func (s settings) destinations() (found []string) {
	for _, text := range s.texts {
		addresses := address.FindAllString(text, -1)
		if m := bareProxy.FindStringSubmatch(text); m != nil {
			addresses = append(addresses, "http://"+m[1])
		}
		for _, a := range addresses {
			u, err := url.Parse(a)
			if err != nil || u.Hostname() == "" {
				continue
			}
			port := u.Port()
			if port == "" {
				port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
			}
			if port != "" {
				found = append(found, net.JoinHostPort(u.Hostname(), port))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// paths returns the files that the settings name, such as certificates, and the directories that contain packages.
func (s settings) paths() (found []string) {
	separators := func(c rune) bool { return strings.ContainsRune(" \t\r\"',;=[]", c) }
	for _, text := range s.texts {
		_, whole, _ := strings.Cut(text, "=")
		packages := strings.Contains(strings.ToLower(strings.ReplaceAll(text, "-", "_")), "find_links") || strings.HasPrefix(text, "SSL_CERT_DIR=")
		for _, word := range append(strings.FieldsFunc(text, separators), whole) {
			path, isURL := strings.CutPrefix(word, "file://")
			if !filepath.IsAbs(path) {
				continue
			}
			info, err := os.Stat(path)
			if err != nil || info.IsDir() && (!packages && !isURL || instance.Within(s.home, path)) || !info.IsDir() && !info.Mode().IsRegular() {
				continue
			}
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// These expressions match what package managers print when the sandbox denies access to a file or a connection. At
// LevelNamespaces, a loopback address belongs to the sandbox's own network, where nothing listens.
var (
	denied  = regexp.MustCompile(`EACCES|EROFS|EPERM|os error 13\b|os error 30\b|Errno 13\b|Errno 30\b`)
	refused = regexp.MustCompile(`(?i)ECONNREFUSED|connection refused`)
	local   = regexp.MustCompile(`\b127\.|\blocalhost\b|::1\b`)
)

// explainDenied adds a note about the sandbox to a package manager's error if the sandbox is a likely cause.
func explainDenied(err error, profile *sandbox.Profile) error {
	if err == nil || profile == nil {
		return err
	}
	if text := err.Error(); !denied.MatchString(text) && (!refused.MatchString(text) || !local.MatchString(text)) {
		return err
	}
	return fmt.Errorf("%w\npackage managers run in a sandbox: they can write only to the app's directory and their cache, and on this machine they can reach only the registries and proxies in the settings of npm, uv and pip", err)
}
