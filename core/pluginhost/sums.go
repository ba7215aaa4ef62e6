package pluginhost

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// sumsFile remembers what the plugins of a home hashed to, in the format of sha256sum.
const sumsFile = "SHA256SUMS"

// ErrChanged tells that a plugin's file is not the one that was first used or last accepted.
var ErrChanged = errors.New("its file has changed since it was first used")

// Sums are the sha256 of the plugins in a home. A plugin whose configuration gives no sha256 is
// pinned to the one it had when it was first used: a changed file is not started until an operator
// accepts it. It is not for concurrent use: plugins are loaded one after the other.
type Sums struct{ Dir string }

// Read returns the remembered sums by file name.
func (s Sums) Read() (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("%s: %q is not a line of the form `sha256  name`", filepath.Join(s.Dir, sumsFile), lines.Text())
		}
		sums[name] = sum
	}
	return sums, nil
}

// Accept remembers what the named plugin's file hashes to now.
func (s Sums) Accept(name string) (string, error) {
	sums, err := s.Read()
	if err != nil {
		return "", err
	}
	sum, err := HashFile(filepath.Join(s.Dir, name))
	if err != nil {
		return "", err
	}
	sums[name] = sum
	return sum, s.write(sums)
}

// sum is what a plugin's file hashes to. ErrChanged when another sum is remembered of it.
func (s Sums) sum(path string) (string, error) {
	sums, err := s.Read()
	if err != nil {
		return "", err
	}
	now, err := HashFile(path)
	if err != nil {
		return "", err
	}
	name := filepath.Base(path)
	if want, known := sums[name]; known && want != now {
		return "", fmt.Errorf("%w: sha256 was %s, is %s; if you changed it, run `ropewalk plugin verify --accept %s`", ErrChanged, want, now, name)
	}
	return now, nil
}

// pin remembers the sum with which a plugin was used for the first time.
func (s Sums) pin(path, sum string) error {
	sums, err := s.Read()
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if _, known := sums[name]; known {
		return nil
	}
	sums[name] = sum
	return s.write(sums)
}

func (s Sums) write(sums map[string]string) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "%s  %s\n", sums[name], name)
	}
	return renameio.WriteFile(filepath.Join(s.Dir, sumsFile), b.Bytes(), 0o600)
}
