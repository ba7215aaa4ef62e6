package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

const (
	maxArtifact  = 512 << 20 // bytes of an executable or an archive
	maxCompanion = 64 << 10  // bytes of a signature or a checksum
)

// artifact is a file in the staging directory, with the information that its source provides about it.
type artifact struct {
	source    string // shown to people and in the lock file, without passwords
	path      string // path in the staging directory; its base name is the file's name at the source
	signature []byte // may be nil
	sums      []sum

	// What a list of plugins states about it; "" if it does not come from one.
	kind    plugins.Kind
	adapter string
	version string
}

// sum is a SHA-256 that the artifact must have, and where it comes from.
type sum struct{ sha256, from string }

var hexSum = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// fetch copies the source into the staging directory.
func (i *Installer) fetch(ctx context.Context, r Request, staging string) (a artifact, err error) {
	if r.SHA256 != "" && !hexSum.MatchString(r.SHA256) {
		return a, errors.New("--sha256 must be 64 hex digits, as sha256sum prints them")
	}
	switch {
	case strings.HasPrefix(r.Source, ociScheme):
		a, err = fetchOCI(ctx, r.Source, staging)
	case strings.Contains(r.Source, "://"):
		a, err = fetchURL(ctx, r.Source, staging, r.SHA256 != "")
	case exists(r.Source):
		a, err = fetchFile(r.Source, staging)
	default:
		a, err = i.fetchListed(ctx, r.Source, staging)
	}
	if err == nil && r.SHA256 != "" {
		a.sums = append(a.sums, sum{r.SHA256, "--sha256"})
	}
	return a, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// verifyChecksum compares the artifact with every known SHA-256.
func (a artifact) verifyChecksum() error {
	now, err := pluginhost.HashFile(a.path)
	if err != nil {
		return err
	}
	for _, s := range a.sums {
		if !strings.EqualFold(s.sha256, now) {
			return fmt.Errorf("the sha256 of %s is %s, but %s specifies %s: it was changed or is incomplete; fetch it again from its author", a.source, now, s.from, strings.ToLower(s.sha256))
		}
	}
	return nil
}

// fetchFile copies a file, or the only plugin in a directory.
func fetchFile(path, staging string) (artifact, error) {
	info, err := os.Stat(path)
	if err != nil {
		return artifact{}, err
	}
	if info.IsDir() {
		if path, err = pluginIn(path); err != nil {
			return artifact{}, err
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return artifact{}, err
	}
	a := artifact{source: absolute, path: filepath.Join(staging, filepath.Base(path))}
	if err := copyFile(path, a.path); err != nil {
		return artifact{}, err
	}
	if a.signature, err = readCompanion(path + ".minisig"); err != nil {
		return artifact{}, err
	}
	for _, name := range []string{path + ".sha256", filepath.Join(filepath.Dir(path), "SHA256SUMS")} {
		text, err := readCompanion(name)
		if err != nil {
			return artifact{}, err
		}
		if err := a.addSums(text, filepath.Base(name)); err != nil {
			return artifact{}, err
		}
	}
	return a, nil
}

// addSums adds the lines about the artifact from a file in sha256sum format, or a lone checksum.
func (a *artifact) addSums(text []byte, from string) error {
	name := filepath.Base(a.path)
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || len(fields) > 1 && strings.TrimPrefix(fields[1], "*") != name {
			continue
		}
		if !hexSum.MatchString(fields[0]) {
			return fmt.Errorf("%s: %s contains %.80q instead of a sha256; ask the plugin's publisher to correct it", a.source, from, fields[0])
		}
		a.sums = append(a.sums, sum{fields[0], from})
	}
	return nil
}

// readCompanion reads a small file that accompanies the plugin. It returns nil if there is none.
func readCompanion(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readSmall(f, path)
}

func readSmall(r io.Reader, name string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxCompanion+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(raw) > maxCompanion {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxCompanion)
	}
	return raw, nil
}

func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a regular file", from))
	}
	return writeFile(to, f, from)
}

// writeFile writes r to a new file and syncs it.
func writeFile(path string, r io.Reader, name string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(r, maxArtifact+1))
	if err != nil {
		return fmt.Errorf("%s is incomplete: %w; try again", name, err)
	}
	if n > maxArtifact {
		return fmt.Errorf("%s is larger than %d MiB, the limit for plugins", name, maxArtifact>>20)
	}
	return out.Sync()
}
