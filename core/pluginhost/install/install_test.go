package install_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/pluginhost/install"
	"github.com/ropewalk/ropewalk/plugins"
)

// program returns a fake plugin. Its first line contains its kind, name and version, which identify reads.
func program(kind, name, version string) []byte {
	return fmt.Appendf(nil, "plugin %s %s %s\n%s", kind, name, version, strings.Repeat("code ", 1000))
}

func identify(_ context.Context, path string) (pluginhost.Identity, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o100 == 0 {
		return pluginhost.Identity{}, errors.Join(err, errors.New("permission denied"))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return pluginhost.Identity{}, err
	}
	var kind, name, version string
	if _, err := fmt.Sscanf(string(raw), "plugin %s %s %s\n", &kind, &name, &version); err != nil {
		return pluginhost.Identity{}, errors.New("exec format error")
	}
	return pluginhost.Identity{Info: plugins.Info{Kind: plugins.Kind(kind), Name: name, Version: version}}, nil
}

// home is the server home into which a test installs plugins.
type home struct {
	*install.Installer
	t     *testing.T
	lines []string
}

func newHome(t *testing.T) *home {
	h := &home{t: t}
	h.Installer = &install.Installer{
		Home: filepath.Join(t.TempDir(), "home"), Identify: identify, Notify: func(line string) { h.lines = append(h.lines, line) },
		Builtin: func(kind plugins.Kind, name string) bool { return kind == plugins.KindAuth && name == "oidc" },
	}
	return h
}

func (h *home) installs(r install.Request) install.Result {
	h.t.Helper()
	result, err := h.Install(h.t.Context(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mustBeClean()
	return result
}

// refuses requires an error with all of parts, and an unchanged home.
func (h *home) refuses(r install.Request, parts ...string) {
	h.t.Helper()
	before := tree(h.t, h.Home)
	_, err := h.Install(h.t.Context(), r)
	if err == nil {
		h.t.Fatalf("%+v is installed", r)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			h.t.Errorf("the refusal %q does not say %q", err, part)
		}
	}
	if after := tree(h.t, h.Home); after != before {
		h.t.Errorf("after a refusal the home is\n%s\nand before it was\n%s", after, before)
	}
}

func (h *home) mustBeClean() {
	h.t.Helper()
	if text := tree(h.t, h.Home); strings.Contains(text, ".install-") {
		h.t.Errorf("files of the installation remain:\n%s", text)
	}
}

// tree returns every file in a directory, and its content; "" if the directory does not exist.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if path == dir && errors.Is(err, os.ErrNotExist) {
			return filepath.SkipAll
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path)
		if !entry.IsDir() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, "  %x\n", sha256.Sum256(raw))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func (h *home) write(name string, content []byte) string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o755); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func companion(t *testing.T, path, extension string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+extension, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

type key struct {
	public  string
	private minisign.PrivateKey
}

func newKey(t *testing.T) key {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key{public.String(), private}
}

// sign signs the hash of the content, as current versions of minisign do.
func (k key) sign(content []byte) []byte {
	r := minisign.NewReader(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, r); err != nil {
		panic(err)
	}
	return r.Sign(k.private)
}

func TestAFileIsInstalledWithARecordOfItsOrigin(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	content := program("auth", "okta", "1.2.0")
	path := h.write("anything", content)
	got := h.installs(install.Request{Source: path})
	if got.Name != "auth-okta" || got.Path != filepath.Join(h.Home, "plugins", "auth-okta") {
		t.Errorf("got %+v", got)
	}
	installed, err := os.ReadFile(got.Path)
	if info, statErr := os.Stat(got.Path); err != nil || statErr != nil || !bytes.Equal(installed, content) || info.Mode().Perm() != 0o755 {
		t.Errorf("the file is %d bytes, mode %v, %v", len(installed), info.Mode(), errors.Join(err, statErr))
	}
	records, err := pluginhost.LockFile{Home: h.Home}.Read()
	record := records["auth-okta"]
	if err != nil || record.SHA256 != sum(content) || record.Source != path || record.Version != "1.2.0" || record.Signer != "" || record.Time.IsZero() {
		t.Errorf("the record is %+v, %v", record, err)
	}
	if len(h.lines) != 1 || !strings.Contains(h.lines[0], "no signature") {
		t.Errorf("an unsigned plugin is reported with %q, want one line", h.lines)
	}
	if again := h.installs(install.Request{Source: path, Name: "other"}); again.Name != "auth-other" {
		t.Errorf("--name other: got %+v", again)
	}
	h.refuses(install.Request{Source: path, Name: "oidc"}, "built-in", "--name")
	h.refuses(install.Request{Source: path, Name: "../up"}, "not a valid adapter name")
	h.refuses(install.Request{Source: h.write("text", []byte("hello"))}, "does not start", "exec format error")
}

func TestAFailedInstallationLeavesNoHomeBehind(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.refuses(install.Request{Source: h.write("x", program("auth", "okta", "1.2.0")), SHA256: strings.Repeat("0", 64)}, "--sha256 specifies 0000")
	if _, err := os.Stat(h.Home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home exists: %v", err)
	}
}

func TestAWrongChecksumIsRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	content := program("auth", "okta", "1.2.0")
	path := h.write("auth-okta", content)
	h.refuses(install.Request{Source: path, SHA256: "12"}, "--sha256 must be 64 hex digits")
	h.refuses(install.Request{Source: path, SHA256: sum([]byte("other"))}, "--sha256", "fetch it again")
	companion(t, path, ".sha256", []byte(sum([]byte("other"))+"  auth-okta\n"))
	h.refuses(install.Request{Source: path}, "auth-okta.sha256 specifies")
	companion(t, path, ".sha256", []byte(sum(content)+"  auth-okta\n"+sum([]byte("other"))+"  another\n"))
	h.installs(install.Request{Source: path, SHA256: strings.ToUpper(sum(content))})
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "SHA256SUMS"), []byte(sum([]byte("other"))+" *auth-okta\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.refuses(install.Request{Source: filepath.Dir(path)}, "SHA256SUMS specifies")
}

func TestOnlySignaturesByTrustedKeysAreAccepted(t *testing.T) {
	t.Parallel()
	content := program("auth", "okta", "1.2.0")
	author, other := newKey(t), newKey(t)
	signed := func(h *home, signature []byte) install.Request {
		path := h.write("auth-okta", content)
		if signature != nil {
			companion(t, path, ".minisig", signature)
		}
		return install.Request{Source: path}
	}
	changed := author.sign(append(bytes.Clone(content), '!'))
	comment := bytes.Replace(author.sign(content), []byte("trusted comment: timestamp:1"), []byte("trusted comment: timestamp:2"), 1)
	for name, signature := range map[string][]byte{"hashed": author.sign(content), "legacy": minisign.Sign(author.private, content)} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.Settings = config.Plugins{TrustedKeys: []string{other.public, author.public}, RequireSignature: true}
			if got := h.installs(signed(h, signature)); got.Record.Signer != author.public || len(h.lines) != 0 {
				t.Errorf("got %+v and the lines %q", got.Record, h.lines)
			}
		})
	}
	for name, c := range map[string]struct {
		settings  config.Plugins
		keys      []string
		signature []byte
		parts     []string
	}{
		"another key":                            {config.Plugins{TrustedKeys: []string{author.public}}, nil, other.sign(content), []string{"not trusted", "--key"}},
		"another key, key required":              {config.Plugins{}, []string{author.public}, other.sign(content), []string{"not trusted"}},
		"a changed byte":                         {config.Plugins{TrustedKeys: []string{author.public}}, nil, changed, []string{"was changed", "fetch both again"}},
		"a changed comment":                      {config.Plugins{TrustedKeys: []string{author.public}}, nil, comment, []string{"was changed"}},
		"no signature, one required":             {config.Plugins{TrustedKeys: []string{author.public}, RequireSignature: true}, nil, nil, []string{"has no signature", "auth-okta.minisig"}},
		"no signature, key required":             {config.Plugins{}, []string{author.public}, nil, []string{"has no signature"}},
		"not a signature":                        {config.Plugins{}, nil, []byte("hello"), []string{"not a minisign signature"}},
		"no key":                                 {config.Plugins{}, []string{"hello"}, author.sign(content), []string{"--key hello", "not a minisign public key"}},
		"a key that would not be accepted later": {config.Plugins{TrustedKeys: []string{other.public}, RequireSignature: true}, []string{author.public}, author.sign(content), []string{"plugins.trustedKeys"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.Settings = c.settings
			r := signed(h, c.signature)
			r.Keys = c.keys
			h.refuses(r, c.parts...)
		})
	}
	t.Run("with a key in a file", func(t *testing.T) {
		h := newHome(t)
		r := signed(h, author.sign(content))
		r.Keys = []string{h.write("okta.pub", []byte("untrusted comment: minisign public key\n"+author.public+"\n"))}
		if got := h.installs(r); got.Record.Signer != author.public {
			t.Errorf("got %+v", got.Record)
		}
		h.refuses(signed(h, nil), "is signed, but its replacement is not", "plugin remove")
	})
	t.Run("without any key", func(t *testing.T) {
		h := newHome(t)
		if got := h.installs(signed(h, author.sign(content))); got.Record.Signer != "" || len(h.lines) != 1 || !strings.Contains(h.lines[0], "is not checked") {
			t.Errorf("got %+v and the lines %q", got.Record, h.lines)
		}
	})
}

func TestADowngradeIsRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	of := func(version string) install.Request {
		return install.Request{Source: h.write("p", program("auth", "okta", version))}
	}
	h.installs(of("dev"))
	h.installs(of("v1.10.0"))
	h.refuses(of("1.9.0"), "1.9.0 is older", "--allow-downgrade")
	h.refuses(of("1.10.0-rc.1"), "is older")
	h.refuses(of("dev"), `"dev" is not a version that can be compared`)
	if got := h.installs(of("1.10.1")); got.Before != "v1.10.0" {
		t.Errorf("got %+v", got)
	}
	back := of("1.9.0")
	back.AllowDowngrade = true
	h.installs(back)

	// For a plugin that somebody copied into the home, the installer asks the plugin for its version.
	lock := pluginhost.LockFile{Home: h.Home}
	if err := os.WriteFile(filepath.Join(lock.Dir(), "auth-okta"), program("auth", "okta", "2.0.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Accept("auth-okta"); err != nil {
		t.Fatal(err)
	}
	h.refuses(of("1.11.0"), "version 2.0.0 of auth-okta is installed")
}

func TestThePluginForThisPlatformIsChosenFromADirectory(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	put := func(name string, content []byte, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, mode); err != nil {
			t.Fatal(err)
		}
	}
	h.refuses(install.Request{Source: dir}, "does not contain a plugin")
	put("README.md", []byte("text"), 0o644)
	put("demo", program("sessionstore", "demo", "1.0.0"), 0o755)
	if got := h.installs(install.Request{Source: dir}); got.Name != "sessionstore-demo" {
		t.Errorf("got %+v", got)
	}
	put("auth-okta_plan9_mips", program("auth", "wrong", "1.0.0"), 0o755)
	put("auth-okta_"+runtime.GOOS+"_"+runtime.GOARCH, program("auth", "okta", "1.0.0"), 0o644)
	put("auth-okta_"+runtime.GOOS+"_"+runtime.GOARCH+".minisig", []byte("x"), 0o644)
	if err := os.Remove(filepath.Join(dir, "auth-okta_"+runtime.GOOS+"_"+runtime.GOARCH+".minisig")); err != nil {
		t.Fatal(err)
	}
	if got := h.installs(install.Request{Source: dir}); got.Name != "auth-okta" {
		t.Errorf("got %+v", got)
	}
	put("registry-a", program("registry", "a", "1.0.0"), 0o755)
	put("registry-b", program("registry", "b", "1.0.0"), 0o755)
	if err := os.Remove(filepath.Join(dir, "auth-okta_"+runtime.GOOS+"_"+runtime.GOARCH)); err != nil {
		t.Fatal(err)
	}
	h.refuses(install.Request{Source: dir}, "several plugins", "registry-a", "specify one")
}

type entry struct {
	name string
	kind byte
	link string
	data []byte
}

func tarball(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.data)), Mode: 0o755}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAnArchiveIsUnpackedAndMayNotWriteElsewhere(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	plugin := entry{"okta-1.0.0/auth-okta", tar.TypeReg, "", program("auth", "okta", "1.0.0")}
	good := tarball(t, entry{"okta-1.0.0/", tar.TypeDir, "", nil}, entry{"okta-1.0.0/README.md", tar.TypeReg, "", []byte("text")}, plugin)
	if got := h.installs(install.Request{Source: h.write("okta.tar.gz", good), SHA256: sum(good)}); got.Name != "auth-okta" || got.Record.SHA256 != sum(plugin.data) {
		t.Errorf("got %+v", got)
	}
	var zipped bytes.Buffer
	w := zip.NewWriter(&zipped)
	f, err := w.Create("auth-zipped")
	if err == nil {
		_, err = f.Write(program("auth", "zipped", "1.0.0"))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := h.installs(install.Request{Source: h.write("okta.zip", zipped.Bytes())}); got.Name != "auth-zipped" {
		t.Errorf("got %+v", got)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for name, entries := range map[string][]entry{
		"a path that leads upwards":     {plugin, {"../../auth-evil", tar.TypeReg, "", []byte("x")}},
		"an absolute path":              {plugin, {outside, tar.TypeReg, "", []byte("x")}},
		"a symbolic link":               {{"auth-okta", tar.TypeSymlink, "/bin/sh", nil}},
		"a file inside a symbolic link": {{"dir", tar.TypeSymlink, filepath.Dir(outside), nil}, {"dir/outside", tar.TypeReg, "", []byte("x")}},
		"a hard link":                   {plugin, {"auth-two", tar.TypeLink, "/etc/passwd", nil}},
		"a device":                      {plugin, {"null", tar.TypeChar, "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.refuses(install.Request{Source: h.write("a.tgz", tarball(t, entries...))}, "is refused")
			if _, err := os.Stat(outside); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file was written outside: %v", err)
			}
		})
	}
	h.refuses(install.Request{Source: h.write("half.tar.gz", good[:len(good)/2])}, "incomplete")
	h.refuses(install.Request{Source: h.write("empty.tar.gz", tarball(t))}, "does not contain a plugin")
}
