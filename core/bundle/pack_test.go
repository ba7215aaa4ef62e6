package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// makeTree creates a directory with files. Files in bin/ are executable. Contents that start with -> are targets
// of symbolic links.
func makeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(content, "->")
		mode := os.FileMode(0o600)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		var err error
		if link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPackAndUnpackReturnTheSameFiles(t *testing.T) {
	files := map[string]string{
		"manifest.json": "{}", "bin/run": "#!/bin/sh", "deep/er/a.txt": "a", "deep/er/empty": "",
		"node_modules/.bin/run": "->../../bin/run", "README.md": "one", "readme.md": "two", "aux.js": "a device elsewhere",
	}
	dir := makeTree(t, files)
	if err := os.Mkdir(filepath.Join(dir, "nothing"), 0o700); err != nil {
		t.Fatal(err)
	}
	var packed, again bytes.Buffer
	sum, err := Pack(t.Context(), dir, &packed, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "bin/run"), later, later); err != nil {
		t.Fatal(err)
	}
	if other, err := Pack(t.Context(), dir, &again, Limits{}); err != nil || other != sum {
		t.Errorf("packing again gives the sum %s (%v), want %s", other, err, sum)
	}
	dest := filepath.Join(t.TempDir(), "dest")
	if err := UnpackPacked(t.Context(), &packed, sum, dest, Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if target, link := strings.CutPrefix(want, "->"); link {
			if got, err := os.Readlink(filepath.Join(dest, name)); got != target {
				t.Errorf("%s leads to %q, %v, want %q", name, got, err, target)
			}
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dest, name)); string(got) != want {
			t.Errorf("%s contains %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]os.FileMode{"bin/run": 0o755, "manifest.json": 0o644, "nothing": os.ModeDir | 0o755} {
		if info, err := os.Stat(filepath.Join(dest, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	if sum2, err := Pack(t.Context(), dest, io.Discard, Limits{}); err != nil || sum2 != sum {
		t.Errorf("the unpacked files have the sum %s, %v, want %s", sum2, err, sum)
	}
}

func TestADirectoryThatCannotBeSharedIsNotPacked(t *testing.T) {
	pipe := makeTree(t, nil)
	if err := syscall.Mkfifo(filepath.Join(pipe, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir    string
		limits Limits
	}{
		"a link out of it":         {dir: makeTree(t, map[string]string{"a/b": "->../../etc"})},
		"an absolute link":         {dir: makeTree(t, map[string]string{"a": "->/etc/passwd"})},
		"a pipe":                   {dir: pipe},
		"too many files":           {dir: makeTree(t, map[string]string{"a": "", "b": ""}), limits: Limits{Files: 1}},
		"a file that is too large": {dir: makeTree(t, map[string]string{"a": "12345"}), limits: Limits{Single: 4}},
		"too much in total":        {dir: makeTree(t, map[string]string{"a": "123", "b": "12"}), limits: Limits{Total: 4}},
	} {
		if _, err := Pack(t.Context(), c.dir, io.Discard, c.limits); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Pack(ctx, makeTree(t, map[string]string{"a": ""}), io.Discard, Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller: %v", err)
	}
}

func TestInvalidArchivesAreNotUnpackedAndLeaveNothingBehind(t *testing.T) {
	var packed bytes.Buffer
	sum, err := Pack(t.Context(), makeTree(t, map[string]string{"a": "12345"}), &packed, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	crafted := func(h *tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if err := errors.Join(w.WriteHeader(h), w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, c := range map[string]struct {
		content []byte
		limits  Limits
		sum     string
	}{
		"other files":        {content: packed.Bytes(), sum: strings.Repeat("0", 64)},
		"only part of it":    {content: packed.Bytes()[:600], sum: sum},
		"data after the end": {content: append(bytes.Clone(packed.Bytes()), 'x'), sum: sum},
		"more than allowed":  {content: packed.Bytes(), sum: sum, limits: Limits{Total: 4}},
		"a link out of it":   {content: crafted(&tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "../x"})},
		"a path out of it":   {content: crafted(&tar.Header{Typeflag: tar.TypeReg, Name: "../x"})},
		"a device":           {content: crafted(&tar.Header{Typeflag: tar.TypeChar, Name: "x"})},
		"not a tar":          {content: bytes.Repeat([]byte("x"), 2000)},
	} {
		if c.sum == "" {
			digest := sha256.Sum256(c.content)
			c.sum = hex.EncodeToString(digest[:])
		}
		parent := t.TempDir()
		if err := UnpackPacked(t.Context(), bytes.NewReader(c.content), c.sum, filepath.Join(parent, "in", "dest"), c.limits); err == nil {
			t.Errorf("%s: unpacked although the parent directory is missing", name)
		}
		if err := UnpackPacked(t.Context(), bytes.NewReader(c.content), c.sum, filepath.Join(parent, "dest"), c.limits); err == nil {
			t.Errorf("%s was unpacked", name)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	dest := t.TempDir()
	if err := UnpackPacked(t.Context(), &packed, sum, dest, Limits{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("into a directory that exists: %v", err)
	}
}
