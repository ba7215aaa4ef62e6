package bundle

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// mcpb runs the official packing tool.
func mcpb(t *testing.T, args ...string) {
	t.Helper()
	cli := filepath.Join(testenv.Node(t), "node_modules", "@anthropic-ai", "mcpb", "dist", "cli", "cli.js")
	if out, err := exec.CommandContext(t.Context(), "node", append([]string{cli}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("mcpb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// source creates a bundle directory. The bundle's server prints its arguments and an environment variable.
func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	doc := with(minimal(), "user_config", map[string]any{
		"greeting": map[string]any{"type": "string", "title": "Greeting", "description": "what to say", "required": true},
		"dirs":     map[string]any{"type": "directory", "title": "Dirs", "description": "where", "multiple": true, "default": []any{"${HOME}/a", "/b"}},
	})
	with(doc, "name", "packed")
	with(doc, "server.mcp_config.args", []any{"${__dirname}/server/index.js", "${user_config.dirs}"})
	with(doc, "server.mcp_config.env", map[string]any{"GREETING": "${user_config.greeting}"})
	code := `console.log(process.env.GREETING, ...process.argv.slice(2), Object.keys(process.env).join())`
	err := errors.Join(os.WriteFile(filepath.Join(dir, ManifestName), encode(t, doc), 0o600),
		os.Mkdir(filepath.Join(dir, "server"), 0o700), os.WriteFile(filepath.Join(dir, "server", "index.js"), []byte(code), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestABundlePackedByTheOfficialToolRuns(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain.mcpb")
	mcpb(t, "pack", source(t), plain)
	signed := filepath.Join(t.TempDir(), "signed.mcpb")
	raw, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(signed, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	mcpb(t, "sign", "--self-signed", "--cert", filepath.Join(t.TempDir(), "cert.pem"), "--key", filepath.Join(t.TempDir(), "key.pem"), signed)
	if raw, err = os.ReadFile(signed); err != nil || !strings.HasSuffix(string(raw), signatureEnd) {
		t.Fatalf("mcpb signed nothing: %v", err)
	}
	for name, path := range map[string]string{"as packed": plain, "signed": signed} {
		t.Run(name, func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "1.2.3")
			if err := Unpack(t.Context(), path, dest, Limits{}); err != nil {
				t.Fatal(err)
			}
			m, err := ReadDir(dest)
			if err != nil {
				t.Fatal(err)
			}
			node := testenv.Program(t, "node")
			l, err := m.Launch(LaunchInput{Dir: dest, Home: "/home/x", Values: map[string]core.Secret{"GREETING": "good morning; $(id)"}, Lookup: Lookup(filepath.Dir(node))})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), l.Path, l.Args...)
			cmd.Env, cmd.Dir = l.Env, l.Dir
			out, err := cmd.Output()
			if want := "good morning; $(id) /home/x/a /b GREETING"; err != nil || strings.TrimSpace(string(out)) != want {
				t.Fatalf("got %q, %v, want %q", out, err, want)
			}
			if got, want := tree(t, dest), []string{"-rw-r--r-- manifest.json", "drwxr-xr-x server", "-rw-r--r-- server/index.js"}; !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	}
}
