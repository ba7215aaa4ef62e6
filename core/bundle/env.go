package bundle

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// maxEnvValue keeps one variable under what Linux takes for one string of execve (MAX_ARG_STRLEN).
const maxEnvValue = 120 << 10

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// deniedEnv reports whether a value of the variable could choose what code runs: it steers the
// loader, an interpreter, a shell or a package manager, or moves the directories that the server
// gives an app. Letter case does not matter.
func deniedEnv(name string) bool {
	switch upper := strings.ToUpper(name); upper {
	case "PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP",
		"ENV", "BASH_ENV", "IFS", "PS4", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "VIRTUAL_ENV",
		"GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_ASKPASS", "EDITOR", "VISUAL", "PAGER", "BROWSER":
		return true
	default:
		families := []string{"LD_", "DYLD_", "PYTHON", "PERL5", "PERLLIB", "MALLOC_", "BASH_FUNC_", "XDG_",
			"UV_", "PIP_", "NPM_CONFIG_", "GIT_CONFIG", "ROPEWALK_", "PLUGIN_"}
		return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
	}
}

// CheckEnv checks environment variables that a caller wants a process to have (hardening 6). The
// first one that is refused, by name, comes back as core.CodeBadRequest naming it, never its value.
// It is the rule for callers: a manifest's own env may set PYTHONPATH, because a manifest already
// chooses the program; only values from user_config may not reach such a variable.
func CheckEnv(env map[string]core.Secret) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name].Reveal()
		switch {
		case !envName.MatchString(name):
			return core.Errorf(core.CodeBadRequest, "env.%.100q is no name for an environment variable: use letters, digits and _", name)
		case deniedEnv(name):
			return core.Errorf(core.CodeBadRequest, "env.%s may not be set: it changes how programs are found or loaded", name)
		case strings.ContainsRune(value, 0):
			return core.Errorf(core.CodeBadRequest, "env.%s must not hold a NUL byte", name)
		case len(value) > maxEnvValue:
			return core.Errorf(core.CodeBadRequest, "env.%s is longer than %d bytes", name, maxEnvValue)
		}
	}
	return nil
}

// CheckValues checks the values of an installation: user_config values by their field's type and
// bounds, all others by CheckEnv. Errors are core.CodeBadRequest and name the value's place.
func (m *Manifest) CheckValues(values map[string]core.Secret) error {
	fields, environ := m.split(values)
	if err := CheckEnv(environ); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if len(fields[key]) > maxEnvValue {
			return core.Errorf(core.CodeBadRequest, "env.%s is longer than %d bytes", key, maxEnvValue)
		}
		if fields[key] == "" {
			continue
		}
		for _, v := range m.UserConfig[key].given(fields[key]) {
			if why := m.UserConfig[key].reject(v); why != "" {
				return core.Errorf(core.CodeBadRequest, "env.%s (user_config) %s", key, why)
			}
		}
	}
	return nil
}
