package hashchain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Summary is the result of Verify and VerifySet.
type Summary struct {
	Files   int
	Records int
	Hash    string // of the last record
}

// Verify checks the chain of a complete file that is not part of a set. The error names the first invalid
// line.
func Verify(r io.Reader) (Summary, error) {
	v := verification{}
	err := v.file(r, nil)
	return v.Summary, err
}

// VerifySet checks the chain of a set, that is, of the file at path and its closed files, oldest first. The error names
// the first invalid file and line. Files may be missing at the beginning if a record states that they were
// deleted. deleted returns the last hash of the file whose deletion a record reports.
func VerifySet(path string, deleted func(record []byte) (hash string, ok bool)) (Summary, error) {
	closed, err := closedFiles(path)
	if err != nil {
		return Summary{}, err
	}
	paths := make([]string, 0, len(closed)+1)
	for _, c := range closed {
		paths = append(paths, c.path)
	}
	if _, err := os.Stat(path); err == nil || len(closed) == 0 {
		paths = append(paths, path) // absent only after a crash between two files
	}
	v := verification{set: true}
	removed := map[string]bool{}
	for i, p := range paths {
		if i > 0 && i < len(closed) && closed[i].number != closed[i-1].number+1 {
			return v.Summary, fmt.Errorf("%s is missing", nameOf(path, closed[i-1].number+1))
		}
		err := v.open(p, func(record []byte) {
			if hash, ok := deleted(record); ok {
				removed[hash] = true
			}
		})
		if err != nil {
			return v.Summary, fmt.Errorf("%s: %w", p, err)
		}
	}
	if v.firstPrevious != "" && !removed[v.firstPrevious] {
		return v.Summary, fmt.Errorf("%s: line 1: does not follow the previous line: the lines or the file before it were removed, and no record says that the file was deleted", paths[0])
	}
	return v.Summary, nil
}

// verification is the state of a Verify.
type verification struct {
	Summary
	set           bool
	firstPrevious string // the previous hash in the first line of a set
}

func (v *verification) open(path string, seen func(record []byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	return withoutPath(v.file(file, seen))
}

// withoutPath returns only the reason for a failed file operation, because the caller adds the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// file checks one file, which continues the previous one.
func (v *verification) file(r io.Reader, seen func(record []byte)) error {
	v.Files++
	lines := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		raw, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(raw) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			return fmt.Errorf("line %d: is truncated", number)
		}
		raw = bytes.TrimSuffix(raw, []byte{'\n'})
		if v.set && v.Records == 0 {
			v.firstPrevious = previousOf(raw)
			v.Hash = v.firstPrevious
		}
		record, hash, err := check(raw, v.Hash)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		v.Hash = hash
		v.Records++
		if seen != nil {
			seen(record)
		}
	}
}

// previousOf returns the previous hash in a line, or "" if raw is not a line.
func previousOf(raw []byte) string {
	var l line
	if json.Unmarshal(raw, &l) != nil {
		return ""
	}
	return l.Previous
}
