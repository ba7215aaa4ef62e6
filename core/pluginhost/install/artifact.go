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
	maxArtifact = 512 << 20 // bytes of an executable or an archive
	maxBeside   = 64 << 10  // bytes of a signature or a checksum
)

// artifact is what a source has: a staged file, and what is known of it before it is looked into.
type artifact struct {
	source    string // for people and the lock file, without passwords
	path      string // in the staging folder; its base is the name at the source
	signature []byte // nil when there is none
	sums      []sum

	// What a list of plugins says of it; "" without a list.
	kind    plugins.Kind
	adapter string
	version string
}

// sum is one SHA-256 that the artifact must have, and who says so.
type sum struct{ sha256, from string }

var hexSum = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// fetch copies what the source has into the staging folder.
func (i *Installer) fetch(ctx context.Context, r Request, staging string) (a artifact, err error) {
	if r.SHA256 != "" && !hexSum.MatchString(r.SHA256) {
		return a, errors.New("--sha256 wants 64 hex digits, as sha256sum prints them")
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

// verifyChecksum compares the artifact with every SHA-256 that is known of it.
func (a artifact) verifyChecksum() error {
	now, err := pluginhost.HashFile(a.path)
	if err != nil {
		return err
	}
	for _, s := range a.sums {
		if !strings.EqualFold(s.sha256, now) {
			return fmt.Errorf("%s has the sha256 %s, and %s says %s: it was changed, or is not whole; fetch it again from its author", a.source, now, s.from, strings.ToLower(s.sha256))
		}
	}
	return nil
}

// fetchFile takes a file, or the one plugin in a folder.
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
	if a.signature, err = readBeside(path + ".minisig"); err != nil {
		return artifact{}, err
	}
	for _, beside := range []string{path + ".sha256", filepath.Join(filepath.Dir(path), "SHA256SUMS")} {
		text, err := readBeside(beside)
		if err != nil {
			return artifact{}, err
		}
		if err := a.addSums(text, filepath.Base(beside)); err != nil {
			return artifact{}, err
		}
	}
	return a, nil
}

// addSums takes the lines about the artifact from a file in the format of sha256sum, or a lone checksum.
func (a *artifact) addSums(text []byte, from string) error {
	name := filepath.Base(a.path)
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || len(fields) > 1 && strings.TrimPrefix(fields[1], "*") != name {
			continue
		}
		if !hexSum.MatchString(fields[0]) {
			return fmt.Errorf("%s: %s has %.80q where a sha256 must be; ask who publishes the plugin to correct it", a.source, from, fields[0])
		}
		a.sums = append(a.sums, sum{fields[0], from})
	}
	return nil
}

// readBeside reads a small file that need not exist; nil when it does not.
func readBeside(path string) ([]byte, error) {
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
	raw, err := io.ReadAll(io.LimitReader(r, maxBeside+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(raw) > maxBeside {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxBeside)
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

// writeFile writes what r has to a new file, and flushes it.
func writeFile(path string, r io.Reader, name string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(r, maxArtifact+1))
	if err != nil {
		return fmt.Errorf("%s did not arrive whole: %w; try again", name, err)
	}
	if n > maxArtifact {
		return fmt.Errorf("%s is larger than %d MiB, which no plugin may be", name, maxArtifact>>20)
	}
	return out.Sync()
}
