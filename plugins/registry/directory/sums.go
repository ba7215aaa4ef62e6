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

// expected is the digest that the folder says a file has, "" when it says nothing. A folder with a
// SHA256SUMS says something about every file: one that is not in it is refused.
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

// lookup finds a file's line in an index of lines "<hex>  <name>". A sidecar may leave the name out.
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
	return "", fmt.Errorf("%s says nothing about %s", index, file)
}
