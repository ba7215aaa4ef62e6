package directory

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

const (
	extension   = ".mcpb"
	maxManifest = 4 << 20
)

// manifest is the part of a bundle's manifest that a registry needs.
type manifest struct {
	Name          string   `json:"name"`
	DisplayName   string   `json:"display_name"`
	Version       string   `json:"version"`
	Description   string   `json:"description"`
	Keywords      []string `json:"keywords"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
}

// fits reports whether the bundle runs on goos. "" matches every bundle.
func (m manifest) fits(goos string) bool {
	listed := m.Compatibility.Platforms
	switch goos {
	case "win32": // not a GOOS value
		return len(listed) == 0
	case "windows":
		goos = "win32"
	}
	return goos == "" || len(listed) == 0 || slices.Contains(listed, goos)
}

// bundle is one file in the folder as it was last read.
type bundle struct {
	manifest
	file string
	info fs.FileInfo

	mu  sync.Mutex
	sum string // "" until it is needed
}

// same reports whether the file has not changed since it was read.
func (b *bundle) same(info fs.FileInfo) bool {
	return os.SameFile(b.info, info) && b.info.Size() == info.Size() && b.info.ModTime().Equal(info.ModTime())
}

// read reads the manifest of one file.
func read(root *os.Root, file string) (*bundle, error) {
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := &bundle{file: file, info: info}
	z, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	m, err := z.Open("manifest.json")
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	raw, err := io.ReadAll(io.LimitReader(m, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("manifest.json is larger than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(raw, &b.manifest); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if b.Name == "" || b.Version == "" {
		return nil, errors.New("manifest.json: name and version are required")
	}
	return b, nil
}

// digest returns the sha256 of the file. It computes it only once.
func (b *bundle) digest(ctx context.Context, root *os.Root) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sum != "" {
		return b.sum, nil
	}
	f, err := root.Open(b.file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, reader{ctx, f}); err != nil {
		return "", err
	}
	b.sum = hex.EncodeToString(h.Sum(nil))
	return b.sum, nil
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// rank returns how well the bundle matches a lower-case text, from 0 for the best match to 4 for none.
func (b *bundle) rank(text string) int {
	name := strings.ToLower(b.Name)
	switch {
	case text == "" || name == text:
		return 0
	case strings.Contains(name[strings.LastIndexByte(name, '/')+1:], text):
		return 1
	case strings.Contains(name, text), strings.Contains(strings.ToLower(b.DisplayName), text):
		return 2
	case strings.Contains(strings.ToLower(b.Description+"\n"+strings.Join(b.Keywords, "\n")), text):
		return 3
	}
	return 4
}
