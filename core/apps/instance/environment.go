package instance

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// DataDirVariable is the name of the environment variable with the directory in which an app may keep its data.
const DataDirVariable = "ROPEWALK_DATA_DIR"

// baseEnvironment returns the environment of an app's process before the values of its manifest and its installation
// are added. It is an allow-list of the host's environment. HOME and TMPDIR are directories of the app, so that the
// app keeps the caches of its runtime.
func baseEnvironment(host map[string]string, dataDir string) map[string]string {
	env := map[string]string{}
	for name, value := range host {
		if IsPassedOn(name) {
			env[name] = value
		}
	}
	env["HOME"] = dataDir
	env["TMPDIR"] = filepath.Join(dataDir, temporaryDir)
	env[DataDirVariable] = dataDir
	return env
}

// startsBrowser matches the names of packages that start a browser.
var startsBrowser = regexp.MustCompile(`(?i)playwright|puppeteer|chrome|browser`)

// choosesBrowser matches the options that select the browser of Playwright's server.
var choosesBrowser = regexp.MustCompile(`--(browser|executable-path|cdp-|config|extension|device|endpoint)`)

// chrome is where Playwright's server looks for its default browser.
const chrome = "/opt/google/chrome/chrome"

// chromium returns the path of the system's Chromium if there is no Chrome. It returns "" if there is no Chromium, or one
// that cannot run in a sandbox because it is a snap.
func (s *Starter) chromium() string {
	if _, err := os.Stat(chrome); err == nil {
		return ""
	}
	for _, name := range []string{"chromium", "chromium-browser"} {
		path, err := bundle.Lookup(s.HostEnv["PATH"])(name)
		if err == nil && !strings.HasPrefix(path, "/snap/") {
			return path
		}
	}
	return ""
}

// maxSocketDir is the maximum length of TMPDIR for Chromium. Chromium creates a socket two levels below it, and the
// kernel limits socket paths to 107 bytes.
const maxSocketDir = 60

// environment adds what was granted to baseEnvironment. git rejects directories of other users unless safe.directory
// lists them, so the granted directories are listed there. git also fails if it sees system settings that it cannot read,
// as at LevelLandlock, so it gets a setting that stops it from looking for them.
func (s *Starter) environment(spec Spec) map[string]string {
	env := baseEnvironment(s.HostEnv, spec.DataDir)
	for _, name := range grantedVariables(spec) {
		if value, ok := s.HostEnv[name]; ok {
			env[name] = value
		}
	}
	if level := s.Confinement.Level(spec.Sandbox); startsBrowser.MatchString(spec.Record.Source.Ref) && level != sandbox.LevelNone {
		env["PLAYWRIGHT_MCP_SANDBOX"] = "false" // Chromium cannot create its own sandbox inside this one
		if path := s.chromium(); path != "" && !choosesBrowser.Match(spec.Record.Manifest) {
			env["PLAYWRIGHT_MCP_EXECUTABLE_PATH"] = path
		}
		if level >= sandbox.LevelNamespaces && len(env["TMPDIR"]) > maxSocketDir {
			env["TMPDIR"] = "/tmp" // the app has its own /tmp
		}
	}
	if s.Confinement.Level(spec.Sandbox) == sandbox.LevelLandlock {
		env["GIT_CONFIG_NOSYSTEM"] = "1"
	}
	count := 0
	for _, a := range spec.Grants {
		if !a.Kind.IsPath() {
			continue
		}
		for _, dir := range []string{a.Target, strings.TrimSuffix(a.Target, "/") + "/*"} {
			env["GIT_CONFIG_KEY_"+strconv.Itoa(count)], env["GIT_CONFIG_VALUE_"+strconv.Itoa(count)] = "safe.directory", dir
			count++
		}
	}
	if count > 0 {
		env["GIT_CONFIG_COUNT"] = strconv.Itoa(count)
	}
	return env
}

// IsPassedOn reports whether apps get a variable of the host's environment: the search path, the language and time
// zone, and trusted certificates. All other variables are withheld.
func IsPassedOn(name string) bool {
	switch name {
	case "PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// withPackagePath puts the commands of an installed package first on PATH, as uvx and npx do.
func withPackagePath(env map[string]string, dir string) map[string]string {
	for _, bin := range []string{filepath.Join(dir, "venv", "bin"), filepath.Join(dir, "node_modules", ".bin")} {
		if info, err := os.Stat(bin); dir != "" && err == nil && info.IsDir() {
			env["PATH"] = strings.TrimSuffix(bin+string(os.PathListSeparator)+env["PATH"], string(os.PathListSeparator))
		}
	}
	return env
}
