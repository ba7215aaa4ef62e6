package apps

import (
	"path/filepath"
	"slices"
	"strings"
)

// DataDirVariable tells an app where it may keep its data.
const DataDirVariable = "ROPEWALK_DATA_DIR"

// baseEnvironment is what every app's process gets before its manifest and its caller are heard:
// an allow-list of the host's environment (spec 5, MCP rule 6), and directories of its own in
// place of HOME and TMPDIR, so that what a runtime caches stays with the app.
func baseEnvironment(host map[string]string, dataDir string) map[string]string {
	env := map[string]string{}
	for name, value := range host {
		if passedOn(name) {
			env[name] = value
		}
	}
	env["HOME"] = dataDir
	env["TMPDIR"] = filepath.Join(dataDir, "tmp")
	env[DataDirVariable] = dataDir
	return env
}

// installerEnvironment is what npm, uv and pip get. They run none of a package's code, and need
// what the operator set up for them: the home with their settings, proxies, certificates.
func installerEnvironment(host map[string]string, tmp string) []string {
	env := []string{"TMPDIR=" + tmp}
	for name, value := range host {
		upper := strings.ToUpper(name)
		if passedOn(name) || name == "HOME" || strings.HasSuffix(upper, "_PROXY") || hasAnyPrefix(upper, "NPM_CONFIG_", "UV_", "PIP_") {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// passedOn reports whether an app sees a variable of the host: how programs are found, the
// language and the time zone, and which certificates are trusted. Nothing else.
func passedOn(name string) bool {
	switch name {
	case "PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}
