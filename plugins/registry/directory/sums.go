package directory

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// sumsFile is the index that sha256sum writes and reads.
const (
	sumsFile = "SHA256SUMS"
	maxSums  = 4 << 20
)

// expected returns the digest that the folder lists for a file, or "" if it lists none. In a folder with a SHA256SUMS,
// a file that is not listed is refused.
func expected(root *os.Root, file string) (string, error) {
	sum, err := lookup(root, file+".sha256", file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return sum, err
	}
	sum, err = lookup(root, sumsFile, file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return sum, err
}

// lookup finds a file's line in an index of lines "<hex>  <name>". A sidecar may omit the name.
func lookup(root *os.Root, index, file string) (string, error) {
	f, err := root.Open(index)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, maxSums))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		named := strings.TrimPrefix(strings.Join(fields[1:], " "), "*") == file
		if named || len(fields) == 1 && index != sumsFile {
			return strings.ToLower(fields[0]), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("the digest of %s cannot be read from %s: %w", file, index, err)
	}
	return "", fmt.Errorf("%s has no entry for %s", index, file)
}
