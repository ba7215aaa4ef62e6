package bundle

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// maxEnvValue keeps a variable below the size that Linux accepts for one string in execve (MAX_ARG_STRLEN).
const maxEnvValue = 120 << 10

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// isHarmless reports whether a variable for an interpreter, for git or for colors affects only output and names.
func isHarmless(name string) bool {
	switch strings.ToUpper(name) {
	case "NODE_ENV", "RUST_LOG",
		"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONFAULTHANDLER",
		"NODE_NO_WARNINGS", "NODE_DISABLE_COLORS", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_TERMINAL_PROMPT":
		return true
	}
	return false
}

// deniedEnv reports whether a value of the variable could choose what code runs or whom the program trusts. Such a
// variable configures the loader, an interpreter, a shell, TLS, a proxy or a package manager, or moves the
// directories that the server gives an app. It ignores case. It applies to declared variables as well.
func deniedEnv(name string) bool {
	if isHarmless(name) {
		return false
	}
	upper := strings.ToUpper(name)
	switch upper {
	case "PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "TZDIR",
		"ENV", "IFS", "PS4", "CDPATH", "FPATH", "ZDOTDIR", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
		"VIRTUAL_ENV", "LOCPATH", "NLSPATH", "HOSTALIASES", "LOCALDOMAIN", "CLASSPATH", "PHPRC", "SSLKEYLOGFILE", "TCLLIBPATH", "MANPATH", "INFOPATH",
		"EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "TERMINFO", "DISPLAY":
		return true
	}
	families := []string{
		"LD_", "DYLD_", "GLIBC_", "GCONV_", "MALLOC_", "RES_", "BASH_", "XDG_", "DBUS_", "ROPEWALK_", "PLUGIN_",
		"NODE_", "NPM_", "BUN_", "DENO_", "YARN_", "COREPACK_", "ELECTRON_", "PYTHON", "PIP_", "UV_", "CONDA_", "PERL", "RUBY", "GEM_", "BUNDLE_", "PHP_", "LUA_", "JULIA_",
		"JAVA_", "JDK_", "_JAVA", "DOTNET_", "COMPLUS_", "CORECLR_", "COR_", "GODEBUG", "GOTRACEBACK", "GOFLAGS", "GOPATH", "GOROOT", "GOPROXY", "CARGO_", "RUSTC", "RUSTUP_",
		"SSL_", "OPENSSL_", "GNUTLS_", "NSS_", "CURL_", "REQUESTS_", "KRB5_", "GIT_CONFIG", "GIT_SSH", "GIT_SSL", "GIT_EXEC", "GIT_TEMPLATE", "GIT_PROXY", "GIT_ASKPASS",
	}
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(upper, prefix) }) ||
		strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_CA_BUNDLE") || strings.HasSuffix(upper, "_PRELOAD")
}

// settingWords are the last words of variable names that contain a program's settings, such as API_KEY.
const settingWords = " ACCESS ACCOUNT ACCOUNTS ADDRESS ADMIN API APP ARN AUTH BASE BATCH BRANCH BUCKET CATEGORY CHANNEL CITY CLIENT CLUSTER CODE COLLECTION COLOR COUNT " +
	"COUNTRY CREDENTIAL CREDENTIALS CURRENCY CUSTOMER DATA DATABASE DATE DB DEBUG DEFAULT DIR DIRECTORIES DIRECTORY DISABLED DOMAIN DSN EMAIL ENABLE ENABLED ENDPOINT " +
	"ENV ENVIRONMENT EXPIRY FILE FILES FILTER FOLDER FORMAT FROM GIVEN GREETING GROUP GROUPS HOST HOSTNAME HOSTS ID IDS INDEX INSTANCE INTERVAL JSON KEY KEYS LABEL LANG " +
	"LANGUAGE LEVEL LIMIT LIST LOCALE LOG LOGIN MAX MESSAGE MIN MODE MODEL MODELS NAME NAMES NAMESPACE NUMBER OAUTH OFFSET ONLY ORG ORGANIZATION OWNER PARTITION PASS " +
	"PASSPHRASE PASSWORD PATH PATHS PIN PORT PREFIX PROFILE PROJECT PROVIDER QUERY QUEUE RATE READONLY REALM REDIRECT REGION REPO REPOSITORY RETRIES ROLE ROOT SCHEMA " +
	"SCOPE SCOPES SECRET SECRETS SEED SETTING SETTINGS SERVER SERVICE SESSION SITE SIZE SOURCE SPACE STORAGE STRING SUBDOMAIN SUBSCRIPTION SUFFIX TABLE TAG TAGS TARGET TEAM TEMPERATURE " +
	"TENANT TEXT THEME THRESHOLD TIMEOUT TIMEZONE TITLE TOKEN TOKENS TOPIC TTL TYPE UNIT UNITS URI URL URLS USER USERNAME USERS VALUE VALUES VAR VARIABLE VERBOSE VERSION WEBHOOK WORKSPACE ZONE "

// isSetting reports whether a variable that the bundle does not declare is named like a setting: a single word, or
// several words, the last of which is in settingWords. Variables that control a runtime unknown to this package, such
// as X_OPTIONS or X_STARTUP_HOOKS, are not settings.
func isSetting(name string) bool {
	upper := strings.Trim(strings.ToUpper(name), "_0123456789")
	last := upper[strings.LastIndexByte(upper, '_')+1:]
	return last == upper && last != "" || strings.Contains(settingWords, " "+last+" ")
}

// CheckEnv checks environment variables that a caller wants a process to have. It allows variables that the bundle
// declares and those named like a setting, unless they affect how programs are found or loaded. The error is
// core.CodeBadRequest for the first rejected variable, by name. It contains the variable's name, but never its value.
// This is the rule for callers: a manifest's own env may set PYTHONPATH, because a manifest already chooses the
// program, but values from user_config may not reach such a variable.
func CheckEnv(env map[string]core.Secret, declared ...string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name].Reveal()
		switch {
		case !envName.MatchString(name):
			return core.Errorf(core.CodeBadRequest, "env.%.100q is not a valid name for an environment variable: use letters, digits and _", name)
		case deniedEnv(name):
			return core.Errorf(core.CodeBadRequest, "env.%s may not be set: it changes how programs are found or loaded", name)
		case !slices.Contains(declared, name) && !isSetting(name) && !isHarmless(name):
			return core.Errorf(core.CodeBadRequest, "env.%s is neither declared by the bundle nor named like a setting (API_KEY, BASE_URL): declare it in the manifest's env", name)
		case strings.ContainsRune(value, 0):
			return core.Errorf(core.CodeBadRequest, "env.%s must not contain a NUL byte", name)
		case len(value) > maxEnvValue:
			return core.Errorf(core.CodeBadRequest, "env.%s is longer than %d bytes", name, maxEnvValue)
		}
	}
	return nil
}

// CheckValues checks the values of an installation: user_config values by their field's type and bounds, all
// others by CheckEnv. Errors are core.CodeBadRequest and name the value.
func (m *Manifest) CheckValues(values map[string]core.Secret) error {
	fields, environ := m.split(values)
	if err := CheckEnv(environ, m.declaredEnv()...); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if len(fields[key]) > maxEnvValue {
			return core.Errorf(core.CodeBadRequest, "env.%s is longer than %d bytes", key, maxEnvValue)
		}
		if fields[key] == "" {
			continue
		}
		for _, v := range m.UserConfig[key].splitValue(fields[key]) {
			if why := m.UserConfig[key].reject(v); why != "" {
				return core.Errorf(core.CodeBadRequest, "env.%s (user_config) %s", key, why)
			}
		}
	}
	return nil
}

// declaredEnv returns the environment variables that the manifest sets or accepts.
func (m *Manifest) declaredEnv() []string {
	var names []string
	if c := m.Server.MCPConfig; c != nil {
		names = slices.AppendSeq(names, maps.Keys(c.Env))
		for _, o := range c.PlatformOverrides {
			names = slices.AppendSeq(names, maps.Keys(o.Env))
		}
	}
	for key, aliases := range m.aliases() {
		names = append(append(names, upperSnake(key)), aliases...)
	}
	for key := range m.UserConfig {
		names = append(names, upperSnake(key))
	}
	return names
}
