package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	hold := func(_ context.Context, c registrytest.Catalogue) error { return c.Write(dir) }
	subject := registrytest.Subject{Registry: open(t, dir), Publish: hold, Backend: moved(dir)}
	plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Normal), subject)

	t.Run("over the wire", func(t *testing.T) {
		subject.Registry = registry.Client(plugintest.Configured(t, registry.Plugin(directory.New()), settings(dir)))
		plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Quick), subject)
	})
}

// moved is a backend whose folder can be moved away and back.
type moved string

func (m moved) Stop(context.Context) error  { return os.Rename(string(m), string(m)+".away") }
func (m moved) Start(context.Context) error { return os.Rename(string(m)+".away", string(m)) }
func (moved) Stall(context.Context) error   { return errors.ErrUnsupported }

func resolve(t *testing.T, r registry.Registry, name, version string) registry.Package {
	t.Helper()
	pkg, err := r.Resolve(t.Context(), registry.Ref{Name: name, Version: version, OS: "linux", Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestTheLatestIsTheHighestRelease(t *testing.T) {
	dir := filled(t)
	r := open(t, dir)
	pkg := resolve(t, r, "@acme/hello", "")
	raw, err := os.ReadFile(filepath.Join(dir, "hello-1.10.0.mcpb"))
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Version != "1.10.0" || pkg.SHA256 != sum(raw) || pkg.Size != int64(len(raw)) || pkg.TrustScore != 60 || pkg.Kind != registry.KindMCPB || pkg.Title != "Title of @acme/hello" {
		t.Fatalf("got %+v", pkg)
	}
	for _, v := range []string{"2.0.0-rc.1", "nightly", "1.9.0"} {
		if got := resolve(t, r, "@acme/hello", v).Version; got != v {
			t.Errorf("requested %s, got %s", v, got)
		}
	}
	for _, file := range []string{"hello-1.10.0.mcpb", "hello-1.9.0.mcpb"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if got := resolve(t, r, "@acme/hello", "").Version; got != "2.0.0-rc.1" {
		t.Errorf("without a release, got %s", got)
	}
}

func TestSearchOrdersByRelevance(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "1.mcpb", "@other/thing", "1.0.0")
	put(t, dir, "2.mcpb", "@hello/other", "1.0.0")
	put(t, dir, "3.mcpb", "@acme/hello", "1.0.0")
	put(t, dir, "4.mcpb", "hello", "1.0.0")
	m := manifest("@acme/zzz", "1.0.0")
	m["description"] = "says Hello"
	write(t, dir, "5.mcpb", bundle(t, m))
	page, err := open(t, dir).Search(t.Context(), registry.Query{Text: " HELLO "})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Entries {
		got = append(got, e.Name)
	}
	if want := []string{"hello", "@acme/hello", "@hello/other", "@acme/zzz"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if _, err := open(t, dir).Search(t.Context(), registry.Query{Cursor: "-1"}); !errors.Is(err, plugins.ErrInvalid) {
		t.Fatalf("another server's cursor: got %v", err)
	}
}

func TestChangesInTheFolderAreNoticed(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/hello"}); !errors.Is(err, plugins.ErrNotFound) {
		t.Fatalf("an empty folder: got %v", err)
	}
	put(t, dir, "hello.mcpb", "@acme/hello", "1.0.0")
	first := resolve(t, r, "@acme/hello", "")
	put(t, dir, "hello.mcpb", "@acme/hello", "1.0.1")
	if second := resolve(t, r, "@acme/hello", ""); second.Version != "1.0.1" || second.SHA256 == first.SHA256 {
		t.Fatalf("a replaced file: got %+v", second)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/hello"}); !errors.Is(err, plugins.ErrUnavailable) {
		t.Fatalf("a deleted folder: got %v", err)
	}
}

func TestRecordedDigestsMustMatch(t *testing.T) {
	body := bundle(t, manifest("@acme/hello", "1.0.0"))
	right, wrong := sum(body), strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"a sidecar":                                {map[string]string{"hello.mcpb.sha256": right + "\n"}, true},
		"a sidecar as sha256sum writes it":         {map[string]string{"hello.mcpb.sha256": strings.ToUpper(right) + "  hello.mcpb\n"}, true},
		"an index":                                 {map[string]string{"SHA256SUMS": wrong + "  other.mcpb\n" + right + " *hello.mcpb\n"}, true},
		"a sidecar that differs":                   {map[string]string{"hello.mcpb.sha256": wrong}, false},
		"an empty sidecar":                         {map[string]string{"hello.mcpb.sha256": "\n"}, false},
		"a sidecar for another file":               {map[string]string{"hello.mcpb.sha256": right + "  other.mcpb"}, false},
		"an index that differs":                    {map[string]string{"SHA256SUMS": wrong + "  hello.mcpb\n"}, false},
		"an index that leaves it out":              {map[string]string{"SHA256SUMS": right + "  other.mcpb\n"}, false},
		"an index that names no file":              {map[string]string{"SHA256SUMS": right + "\n"}, false},
		"an index that cannot be read":             {map[string]string{"SHA256SUMS": strings.Repeat("x", 70_000) + "\n" + right + "  hello.mcpb\n"}, false},
		"an index of 4 MiB":                        {map[string]string{"SHA256SUMS": strings.Repeat("\n", 4<<20-len(right)-12) + right + "  hello.mcpb"}, true},
		"an index past 4 MiB":                      {map[string]string{"SHA256SUMS": strings.Repeat("\n", 4<<20-len(right)-11) + right + "  hello.mcpb"}, false},
		"a sidecar takes precedence over an index": {map[string]string{"hello.mcpb.sha256": right, "SHA256SUMS": wrong + "  hello.mcpb\n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "hello.mcpb", body)
			for file, text := range c.files {
				write(t, dir, file, []byte(text))
			}
			_, err := open(t, dir).Resolve(t.Context(), registry.Ref{Name: "@acme/hello"})
			if c.ok && err != nil || !c.ok && (!errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "hello.mcpb")) {
				t.Fatalf("got %v; a file with the wrong digest must be reported as unavailable, not as missing", err)
			}
			fetched, err := open(t, dir).Fetch(t.Context(), registry.Package{Kind: registry.KindMCPB, Artifact: "hello.mcpb"})
			if err == nil {
				_ = fetched.Close()
			}
			if (err == nil) != c.ok {
				t.Errorf("Fetch must accept the same files as Resolve: got %v", err)
			}
		})
	}
}

func TestPlatforms(t *testing.T) {
	dir := t.TempDir()
	for file, platform := range map[string]string{"a.mcpb": "darwin", "b.mcpb": "win32"} {
		m := manifest("@acme/hello", "1.0.0")
		m["compatibility"] = map[string]any{"platforms": []string{platform}}
		write(t, dir, file, bundle(t, m))
	}
	r := open(t, dir)
	for goos, file := range map[string]string{"darwin": "a.mcpb", "windows": "b.mcpb"} {
		if pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/hello", OS: goos}); err != nil || pkg.Artifact != file {
			t.Errorf("%s: got %s, %v", goos, pkg.Artifact, err)
		}
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/hello", OS: "linux"}); !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), "not for linux") {
		t.Errorf("linux: got %v", err)
	}
}

func TestOneBadFileDoesNotAffectOthers(t *testing.T) {
	dir := filled(t)
	outside := filepath.Join(t.TempDir(), "secret.mcpb")
	write(t, filepath.Dir(outside), "secret.mcpb", bundle(t, manifest("@secret/x", "1.0.0")))
	write(t, dir, "broken.mcpb", []byte("PK no zip"))
	write(t, dir, "empty.mcpb", nil)
	write(t, dir, "nameless.mcpb", bundle(t, map[string]any{"version": "1"}))
	write(t, dir, "readme.txt", []byte("not a bundle"))
	for link, to := range map[string]string{"out.mcpb": outside, "dangling.mcpb": "none", "loop.mcpb": "loop.mcpb"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.mcpb"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	page, err := r.Search(t.Context(), registry.Query{})
	if err != nil || len(page.Entries) != 6 {
		t.Fatalf("got %d entries, %v", len(page.Entries), err)
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "@secret/x"}); !errors.Is(err, plugins.ErrNotFound) {
		t.Fatalf("a link that points outside the folder: got %v", err)
	}
	for _, artifact := range []string{"out.mcpb", "broken.mcpb", "empty.mcpb", "nameless.mcpb", "folder.mcpb", "readme.txt", "../" + filepath.Base(dir) + "/plain.mcpb", outside} {
		if body, err := r.Fetch(t.Context(), registry.Package{Kind: registry.KindMCPB, Artifact: artifact}); err == nil {
			raw, _ := io.ReadAll(body)
			t.Errorf("Fetch of %s returned %d bytes", artifact, len(raw))
		}
	}
}

func TestADownloadStopsWhenItsContextEnds(t *testing.T) {
	r := open(t, filled(t))
	ctx, cancel := context.WithCancel(t.Context())
	body, err := r.Fetch(ctx, resolve(t, r, "plain", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	cancel()
	if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", nil)
	for name, c := range map[string]struct{ settings, want string }{
		"nothing":              {`{}`, "dir: must be the absolute path"},
		"a relative path":      {`{"dir": "bundles"}`, "dir: must be the absolute path"},
		"a missing folder":     {`{"dir": "/no/such/folder"}`, "dir: cannot be read"},
		"a file":               {`{"dir": "` + file + `"}`, "dir: is not a folder"},
		"a trust score of 101": {`{"dir": "/tmp", "trustScore": 101}`, "trustScore: must be 0 to 100"},
		"a trust score of -1":  {`{"dir": "/tmp", "trustScore": -1}`, "trustScore: must be 0 to 100"},
		"a typo":               {`{"dri": "/tmp"}`, `did you mean "dir"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := directory.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)})
			if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if err := directory.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)}); !errors.Is(err, plugins.ErrInvalid) {
				t.Errorf("Configure: got %v", err)
			}
		})
	}
	for _, score := range []string{"0", "100"} {
		if err := directory.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(`{"dir": "/tmp", "trustScore": ` + score + `}`)}); err != nil {
			t.Errorf("a trust score of %s: %v", score, err)
		}
	}
}

func TestAManifestIsAtMostFourMiB(t *testing.T) {
	for size, want := range map[int]bool{4 << 20: true, 4<<20 + 1: false} {
		m := manifest("@acme/hello", "1.0.0")
		m["description"] = ""
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		m["description"] = strings.Repeat("x", size-len(raw))
		dir := t.TempDir()
		write(t, dir, "hello.mcpb", bundle(t, m))
		if _, err := open(t, dir).Resolve(t.Context(), registry.Ref{Name: "@acme/hello"}); (err == nil) != want {
			t.Errorf("a manifest of %d bytes: got %v", size, err)
		}
	}
}

func TestNoCallLeavesAFileOpen(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list open files")
		}
		return len(entries)
	}
	dir := filled(t)
	r := open(t, dir)
	pkg := resolve(t, r, "@acme/hello", "")
	write(t, dir, pkg.Artifact+".sha256", []byte(pkg.SHA256))
	before := files()
	for range 100 {
		if _, err := r.Search(t.Context(), registry.Query{}); err != nil {
			t.Fatal(err)
		}
		resolve(t, r, "@acme/hello", "")
		body, err := r.Fetch(t.Context(), pkg)
		if err != nil {
			t.Fatal(err)
		}
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := files(); after > before+20 {
		t.Errorf("%d files were open before the calls, and %d after them", before, after)
	}
}
