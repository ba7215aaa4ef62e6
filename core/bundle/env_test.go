package bundle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestCheckEnvRefusesAndNamesTheKey(t *testing.T) {
	denied := []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "ld_preload", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "node_options", "NODE_PATH",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PATH", "Path", "HOME", "SHELL", "BASH_ENV", "ENV", "IFS", "TMPDIR", "TMP", "TEMP",
		"BASH_FUNC_x", "GLIBC_TUNABLES", "GCONV_PATH", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "XDG_CONFIG_HOME", "UV_INDEX_URL",
		"PIP_INDEX_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "ROPEWALK_HOME", "PLUGIN_CLIENT_CERT",
		"NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES",
		"SSLKEYLOGFILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "GODEBUG",
		"DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "LUA_PATH", "LUA_INIT", "PHPRC", "PHP_INI_SCAN_DIR", "GEM_PATH", "BUNDLE_GEMFILE", "ZDOTDIR",
		"R_PROFILE_USER_HOOK", "JULIA_LOAD_PATH", "TCLLIBPATH", "KRB5_CONFIG", "DENO_DIR", "BUN_CONFIG_FILE", "GUILE_INIT_HOOKS", "ERL_FLAGS", "SOME_RUNTIME_OPTIONS",
	}
	misnamed := []string{"", "A=B", "A B", "1A", "A-B", "A.B", "Ä", "A\x00", "A\n", "$(id)", "A;id", "`id`", strings.Repeat("A", 300)}
	for _, name := range slices.Concat(denied, misnamed) {
		err := CheckEnv(map[string]core.Secret{name: "canary-value"})
		if core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%q: got %v, want bad_request", name, err)
			continue
		}
		if strings.Contains(err.Error(), "canary-value") {
			t.Errorf("%q: the error shows the value: %v", name, err)
		}
		if slices.Contains(denied, name) && !strings.Contains(err.Error(), "env."+name) {
			t.Errorf("%q: the error does not name the key: %v", name, err)
		}
	}
	for what, value := range map[string]string{"a NUL byte": "a\x00b", "130 KiB": strings.Repeat("x", 130<<10)} {
		if err := CheckEnv(map[string]core.Secret{"KEY": core.Secret(value)}); core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), "env.KEY") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestVariablesThatAreNotDeniedAreAllowed(t *testing.T) {
	for name, declared := range map[string]bool{
		"API_KEY": false, "GITHUB_TOKEN": false, "MEMORY_FILE_PATH": false, "GIVEN": false, "K": false, "greeting": false, "REPLICA_URL_2": false, "NODE_ENV": false, "PYTHONUNBUFFERED": false, "PYTHONUTF8": false, "FORCE_COLOR": false, "GIT_AUTHOR_EMAIL": false,
		"WIDGET_STYLE_GUIDE": true, "SOME_RUNTIME_OPTIONS": true,
	} {
		env := map[string]core.Secret{name: "x"}
		if err := CheckEnv(env, name); err != nil {
			t.Errorf("%s, declared: %v", name, err)
		}
		if err := CheckEnv(env); (err == nil) == declared {
			t.Errorf("%s, not declared: %v", name, err)
		}
	}
}

// A value arrives byte-identical or is refused. No shell ever interprets it.
func TestValuesArriveUnchanged(t *testing.T) {
	tricks := []string{
		"", " ", "plain", "two words", "\ttab\n", "$HOME", "${HOME}", "${__dirname}", "${user_config.other}", "$(id)", "`id`", ";id", "|id", "&&id", "> /tmp/x",
		"'", `"`, `\`, `\\`, `a'b"c`, "*", "?", "~", "~root", "!", "#", "--flag", "-", "--", "=", "a=b", "%s%n", "\x01\x7f", "\r\n", "é", "日本", "\xff\xfe", "${/}",
		"../../etc/passwd", "file:///etc/passwd", strings.Repeat("x", 100_000),
	}
	doc := with(minimal(), "user_config.value", map[string]any{"type": "string"})
	with(doc, "server.mcp_config.args", []any{"--value", "${user_config.value}", "--joined=${user_config.value}"})
	with(doc, "server.mcp_config.env", map[string]any{"FROM_CONFIG": "${user_config.value}", "FIXED": "$HOME $(id)"})
	m := parse(t, doc)
	checked := 0
	for i := range 200 {
		value := tricks[i%len(tricks)]
		if n := i / len(tricks); n > 0 {
			value = fmt.Sprint(n) + value + tricks[(i*7)%len(tricks)]
		}
		l, err := m.Launch(input(t, map[string]core.Secret{"value": core.Secret(value), "DIRECT": core.Secret(value)}))
		if err != nil {
			if core.CodeOf(err) != core.CodeBadRequest {
				t.Fatalf("%q: %v", value, err)
			}
			continue
		}
		checked++
		if want := []string{"--value", value, "--joined=" + value}; !slices.Equal(l.Args, want) {
			t.Fatalf("%q: arguments are %q", value, l.Args)
		}
		for _, want := range []string{"DIRECT=" + value, "FIXED=$HOME $(id)"} {
			if !slices.Contains(l.Env, want) {
				t.Fatalf("%q: the environment %q lacks %q", value, l.Env, want)
			}
		}
		if value != "" && !slices.Contains(l.Env, "FROM_CONFIG="+value) {
			t.Fatalf("%q: the environment %q lacks the user_config value", value, l.Env)
		}
	}
	if checked < 150 {
		t.Fatalf("only %d of 200 values were accepted", checked)
	}
}

func TestTheHostEnvironmentIsNotPassedOn(t *testing.T) {
	for i := range 50 {
		t.Setenv(fmt.Sprintf("CANARY_%d", i), "canary")
	}
	m := parse(t, with(minimal(), "server.mcp_config.args", []any{"$CANARY_1", "${CANARY_2}"}))
	l, err := m.Launch(input(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(l.Env, " "); strings.Contains(text, "CANARY") {
		t.Fatalf("the environment contains a variable of the host: %s", text)
	}
	if !slices.Equal(l.Args, []string{"$CANARY_1", "${CANARY_2}"}) {
		t.Fatalf("arguments are %q: unknown variables stay as they are", l.Args)
	}
}
