package hashchain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// closedFile is a file of a set that was closed and followed by the next one.
type closedFile struct {
	path   string
	number int
}

// closedFiles returns the closed files of a set, oldest first. Their names are the current file's name with a
// dot and a number of at least six digits.
func closedFiles(path string) ([]closedFile, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []closedFile
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if !ok || len(digits) < 6 || !e.Type().IsRegular() {
			continue
		}
		number, err := strconv.Atoi(digits)
		if err == nil && number > 0 && filepath.Base(nameOf(path, number)) == e.Name() {
			all = append(all, closedFile{nameOf(path, number), number})
		}
	}
	slices.SortFunc(all, func(a, b closedFile) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

func nameOf(path string, number int) string { return fmt.Sprintf("%s.%06d", path, number) }

// lastLine returns the record and the hash of the last line of a closed file.
func lastLine(path string) (record []byte, hash string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, "", err
	}
	for size := min(info.Size(), 64<<10); size > 0; size = min(info.Size(), 2*size) {
		tail := make([]byte, size)
		if _, err := file.ReadAt(tail, info.Size()-size); err != nil {
			return nil, "", err
		}
		raw, whole := bytes.CutSuffix(tail, []byte{'\n'})
		if !whole {
			break
		}
		begins := bytes.LastIndexByte(raw, '\n') + 1
		if begins == 0 && size < info.Size() && size <= MaxLine {
			continue
		}
		var l line
		if err := json.Unmarshal(raw[begins:], &l); err != nil {
			return nil, "", errors.New("its last line is not a record")
		}
		return l.Record, l.Hash, nil
	}
	return nil, "", errors.New("is truncated")
}
