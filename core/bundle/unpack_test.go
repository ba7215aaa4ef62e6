package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree returns the mode and the relative path of everything in dir, separated by a space.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out = append(out, info.Mode().String()+" "+rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnpackWritesWhatWasPacked(t *testing.T) {
	path := writeFile(t, bundleOf(t,
		rawEntry{name: "server/", mode: fs.ModeDir | 0o700},
		rawEntry{name: "server/index.js", data: "code", method: 8},
		rawEntry{name: "bin/tool", data: "elf", mode: 0o755 | fs.ModeSetuid},
		rawEntry{name: "node_modules/@a/b/ünï.js", data: strings.Repeat("x", 100_000), method: 8, dos: true},
	))
	dest := filepath.Join(t.TempDir(), "1.0.0")
	if err := Unpack(t.Context(), path, dest, Limits{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drwxr-xr-x bin", "-rwxr-xr-x bin/tool", "-rw-r--r-- manifest.json", "drwxr-xr-x node_modules", "drwxr-xr-x node_modules/@a",
		"drwxr-xr-x node_modules/@a/b", "-rw-r--r-- node_modules/@a/b/ünï.js", "drwxr-xr-x server", "-rw-r--r-- server/index.js",
	}
	if got := tree(t, dest); !slices.Equal(got, want) {
		t.Fatalf("got %q\nwant %q", got, want)
	}
	if raw, err := os.ReadFile(filepath.Join(dest, "server", "index.js")); string(raw) != "code" {
		t.Fatalf("got %q, %v", raw, err)
	}
	if m, err := ReadDir(dest); err != nil || m.Version != "1.2.3" {
		t.Fatalf("got %v, %v", m, err)
	}
	if left := tree(t, filepath.Dir(dest)); len(left) != len(want)+1 {
		t.Fatalf("other files were left behind: %q", left)
	}
}

func TestUnpackMakesABinaryServerExecutable(t *testing.T) {
	doc := with(minimal(), "server", map[string]any{"type": "binary", "entry_point": "./bin/tool"})
	path := writeFile(t, rawZip([]rawEntry{{name: ManifestName, data: string(encode(t, doc))}, {name: "bin/tool", dos: true}, {name: "bin/data", dos: true}}))
	dest := filepath.Join(t.TempDir(), "b")
	if err := Unpack(t.Context(), path, dest, Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dest); !slices.Contains(got, "-rwxr-xr-x bin/tool") || !slices.Contains(got, "-rw-r--r-- bin/data") {
		t.Fatalf("got %q", got)
	}
}

// sign appends a signature block as packing tools do. counted says whether the zip's comment length includes it.
func sign(raw []byte, signature string, counted bool) []byte {
	var block bytes.Buffer
	block.WriteString(signatureStart)
	_ = binary.Write(&block, binary.LittleEndian, uint32(len(signature)))
	block.WriteString(signature + signatureEnd)
	out := slices.Clone(raw)
	if counted {
		binary.LittleEndian.PutUint16(out[len(out)-2:], uint16(block.Len()))
	}
	return append(out, block.Bytes()...)
}

func TestUnpackIgnoresASignature(t *testing.T) {
	raw := bundleOf(t, rawEntry{name: "a.txt", data: "a"})
	fake := string(bundleOf(t, rawEntry{name: "evil.txt", data: "e"}))
	for name, signed := range map[string][]byte{
		"a plain one":                             sign(raw, strings.Repeat("\x30", 2000), false),
		"one that the comment counts":             sign(raw, strings.Repeat("\x30", 2000), true),
		"one that contains the marker itself":     sign(raw, "x"+signatureStart+"\x00\x00\x00\x00"+signatureEnd+"y", false),
		"one that hides another zip":              sign(raw, fake, false),
		"one that hides a zip behind the comment": sign(raw, fake, true),
		"one longer than a zip's comment":         sign(raw, strings.Repeat("s", 80_000), false),
	} {
		t.Run(name, func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "b")
			path := writeFile(t, signed)
			if err := Unpack(t.Context(), path, dest, Limits{}); err != nil {
				t.Fatal(err)
			}
			if got := tree(t, dest); !slices.Equal(got, []string{"-rw-r--r-- a.txt", "-rw-r--r-- manifest.json"}) {
				t.Fatalf("got %q", got)
			}
			a, err := openArchive(path, Limits{}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			if m, err := a.manifest(); err != nil || m.Name != "@acme/hello" {
				t.Fatalf("got %v, %v", m, err)
			}
		})
	}
}

func TestUnpackNeverReplaces(t *testing.T) {
	dest := t.TempDir()
	if err := Unpack(t.Context(), writeFile(t, bundleOf(t)), dest, Limits{}); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("got %v", err)
	}
	if got := tree(t, dest); len(got) != 0 {
		t.Fatalf("got %q", got)
	}
}

func TestUnpackRefusesEverythingButFilesAndDirectories(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "b")
	if err := Unpack(t.Context(), t.TempDir(), dest, Limits{}); !errors.Is(err, ErrArchive) {
		t.Fatalf("a directory: got %v", err)
	}
	if err := Unpack(t.Context(), filepath.Join(t.TempDir(), "none"), dest, Limits{}); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrArchive) {
		t.Fatalf("no file: got %v", err)
	}
}

// countdown is a context that is cancelled after n calls to Err.
type countdown struct {
	context.Context
	n *int
}

func (c countdown) Err() error {
	if *c.n--; *c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestUnpackLeavesNothingWhenCancelled(t *testing.T) {
	var entries []rawEntry
	for _, name := range []string{"a", "b", "c/d"} {
		entries = append(entries, rawEntry{name: name, data: strings.Repeat(name, 200_000), method: 8})
	}
	path := writeFile(t, bundleOf(t, entries...))
	parent := t.TempDir()
	for n := 0; ; n++ {
		left := n
		err := Unpack(countdown{t.Context(), &left}, path, filepath.Join(parent, "b"), Limits{})
		if err == nil {
			if n < 20 {
				t.Fatalf("the context was checked only %d times", n)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d: %v", n, err)
		}
		if left := tree(t, parent); len(left) != 0 {
			t.Fatalf("after %d: left behind %q", n, left)
		}
	}
}

func TestUnpackingAnOrdinaryZip(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, data := range map[string][]byte{ManifestName: encode(t, minimal()), "big": bytes.Repeat([]byte("0123456789"), 1<<20)} {
		f, err := w.Create(name) // streamed, so the sizes follow the data
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(t.Context(), writeFile(t, b.Bytes()), filepath.Join(t.TempDir(), "b"), Limits{}); err != nil {
		t.Fatal(err)
	}
}

func TestFileSHA256(t *testing.T) {
	sum, size, err := FileSHA256(t.Context(), writeFile(t, []byte("abc")))
	if err != nil || size != 3 || sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatalf("got %s, %d, %v", sum, size, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := FileSHA256(ctx, writeFile(t, []byte("abc"))); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
