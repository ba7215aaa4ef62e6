package bundle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// FuzzManifest checks that no document causes a panic, that every method works on an accepted manifest, and
// that no configured value becomes part of the program's path.
func FuzzManifest(f *testing.F) {
	f.Add(encode(f, minimal()))
	f.Add(encode(f, with(with(minimal(), "user_config.k", map[string]any{"type": "string", "multiple": true, "default": []any{"a"}}),
		"server.mcp_config.args", []any{"${user_config.k}", "${__dirname}${/}x", "${user_config.k}${HOME}"})))
	f.Add([]byte(`{"manifest_version":"0.4","_meta":{"a/upjack":{"primaryView":{"resourceUri":"ui://x"}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseManifest(raw)
		if err != nil {
			return
		}
		values := map[string]core.Secret{"CANARY": "canary-value"}
		for key := range m.UserConfig {
			values[key] = "canary-value"
		}
		m.Missing(values)
		m.UI()
		m.Type()
		if name, err := ServerName(m.Name); err == nil && (len(name) > maxServerName || name == reservedServer || name == "") {
			t.Fatalf("server name %q", name)
		}
		in := input(t, values)
		l, err := m.Launch(in)
		if err == nil && strings.Contains(l.Path, "canary-value") {
			t.Fatalf("a value chose the program: %s", l.Path)
		}
	})
}

// FuzzUnpack checks that an archive is either unpacked completely or leaves nothing behind. Only regular files
// and directories may be created, and nothing outside the destination. It calls stage instead of Unpack because
// flushing to disk is slow.
func FuzzUnpack(f *testing.F) {
	f.Add(bundleOf(f, rawEntry{name: "a/b", data: "x", method: 8}))
	f.Add(bundleOf(f, rawEntry{name: "../a", data: "x"}))
	f.Add(bundleOf(f, rawEntry{name: "link", data: "/etc", mode: fs.ModeSymlink | 0o777}))
	f.Add(sign(bundleOf(f), "signature", true))
	f.Fuzz(func(t *testing.T, raw []byte) {
		outer := t.TempDir()
		parent := filepath.Join(outer, "in")
		path := filepath.Join(outer, "x.mcpb")
		if err := errors.Join(os.Mkdir(parent, 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
		limits := Limits{Files: 100, Total: 1 << 20}
		_, err := stage(t.Context(), path, parent, limits.withDefaults())
		for _, line := range tree(t, outer) {
			if line[0] != '-' && line[0] != 'd' {
				t.Fatalf("not a plain file: %s", line)
			}
		}
		entries, _ := os.ReadDir(parent)
		inOuter, _ := os.ReadDir(outer)
		if len(inOuter) != 2 || err != nil && len(entries) != 0 || err == nil && len(entries) != 1 {
			t.Fatalf("%v left %v, and %v outside", err, entries, inOuter)
		}
	})
}
