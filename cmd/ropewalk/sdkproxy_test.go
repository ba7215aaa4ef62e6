package main_test

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

const sdkModule = "github.com/ropewalk/ropewalk"

// sdkRelease publishes the SDK of this checkout as a release on a file-based module proxy, and configures the
// script to use that proxy. It returns the version, which is different each time: the module cache keeps
// versions permanently, and other test runs use the same cache.
func sdkRelease(t *testing.T, s *script) (version string) {
	t.Helper()
	files := sdkFiles(t)
	version = "v0.0.0-test." + strings.ToLower(rand.Text())
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(sdkModule + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write(files[name]) // writes to memory
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(sdkModule), "@v")
	install := func(extension string, content []byte) {
		if err := os.WriteFile(filepath.Join(at, version+extension), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	install(".zip", archive.Bytes())
	install(".mod", files["go.mod"])
	install(".info", []byte(`{"Version":"`+version+`"}`))
	cache, usual := goEnv(t, "GOMODCACHE"), goEnv(t, "GOPROXY")
	t.Cleanup(func() {
		_ = os.RemoveAll(filepath.Join(cache, filepath.FromSlash(sdkModule)+"@"+version))
		left, _ := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(sdkModule), "@v", version+".*"))
		for _, file := range left {
			_ = os.Remove(file)
		}
	})
	s.environ = append(s.environ, "GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download")+","+usual, "GOSUMDB=off")
	s.environ = append(s.environ, testenv.GoEnviron("-modcacherw")...)
	return version
}

// sdkFiles returns the files of the module that plugins use.
func sdkFiles(t *testing.T) map[string][]byte {
	t.Helper()
	root := os.DirFS(testenv.Root(t))
	files := map[string][]byte{}
	for _, top := range []string{"go.mod", "plugins", "proto"} {
		err := fs.WalkDir(root, top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files[path], err = fs.ReadFile(root, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
