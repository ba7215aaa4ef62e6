package hashchain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// MaxLine is the maximum length of a line in bytes, without its line break. A longer one is neither written nor read.
// MaxRecord is the length of a record that always fits: the rest of a line is two hashes and the names of its members.
const (
	MaxLine   = 32 << 20
	MaxRecord = MaxLine - 512
)

// line is one line of a file. Hash covers Previous and the record's bytes.
type line struct {
	Record   json.RawMessage `json:"record"`
	Previous string          `json:"previous"` // hash of the previous line; "" for the first line
	Hash     string          `json:"hash"`
}

func hashOf(previous string, record []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, previous)
	_, _ = h.Write([]byte{'\n'})
	_, _ = h.Write(record)
	return hex.EncodeToString(h.Sum(nil))
}

// File is a file that grows by one line per record, chained by hash. Several processes may append to it at the
// same time.
type File struct {
	path string
	sync bool
	seen func(record []byte) error

	mu    sync.Mutex
	file  *os.File
	last  string
	lines int   // complete lines
	end   int64 // offset of the end of the last complete line
}

// Open opens or creates a file and continues its chain. If durable is set, records are on disk before Append
// returns. A last line that was cut off by a crash is removed. seen, if not nil, is called for every existing
// record, and for records appended by other processes before the next Append returns.
func Open(path string, durable bool, seen func(record []byte) error) (*File, error) {
	return openAfter(path, durable, seen, "")
}

// openAfter is like Open, for a file whose first line follows a line with the hash previous.
func openAfter(path string, durable bool, seen func(record []byte) error, previous string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, sync: durable, seen: seen, file: file, last: previous}
	err = f.locked(func() error { return nil })
	if err == nil && durable {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return f, nil
}

// syncFolder syncs the directory that contains the file.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Append writes records, each the output of json.Marshal, as a unit: after an error the file contains none of
// them. It first checks what other processes appended, so that records already seen can be left out: fresh, if
// not nil, is called after that and returns the records to write.
func (f *File) Append(fresh func() ([][]byte, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.locked(func() error {
		records, err := fresh()
		if err != nil || len(records) == 0 {
			return err
		}
		var raw []byte
		last := f.last
		for _, record := range records {
			next := line{Record: record, Previous: last, Hash: hashOf(last, record)}
			text, err := json.Marshal(next)
			if err != nil {
				return err
			}
			if len(text) > MaxLine {
				return fmt.Errorf("a record of %d bytes is too long for a line (%d bytes at most)", len(record), MaxLine)
			}
			raw, last = append(append(raw, text...), '\n'), next.Hash
		}
		_, err = f.file.WriteAt(raw, f.end)
		if err == nil && f.sync {
			err = f.file.Sync()
		}
		if err != nil { // no trace of a line that was not written may stay in the chain
			return errors.Join(err, f.file.Truncate(f.end))
		}
		f.last, f.end, f.lines = last, f.end+int64(len(raw)), f.lines+len(records)
		return nil
	})
}

// locked runs fn while no other process appends, after checking everything that others appended.
func (f *File) locked(fn func() error) error {
	if err := syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the file: %w", err)
	}
	defer func() { _ = syscall.Flock(int(f.file.Fd()), syscall.LOCK_UN) }()
	if err := f.follow(); err != nil {
		return err
	}
	return fn()
}

// follow checks what was appended since the last known line.
func (f *File) follow() error {
	now, err := f.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(f.path); err != nil || !os.SameFile(now, there) {
		return errors.New("the file was removed or replaced while in use: restore it, or restart to begin a new one")
	}
	switch {
	case now.Size() == f.end:
		return nil
	case now.Size() < f.end:
		return errors.New("the file was truncated while in use")
	}
	if err := f.scan(io.NewSectionReader(f.file, f.end, now.Size()-f.end)); err != nil {
		return err
	}
	return f.file.Truncate(f.end)
}

// Each calls fn for each record whose line contains the given bytes, starting with the first, until fn returns false.
// That includes records appended by other processes.
func (f *File) Each(containing []byte, fn func(record []byte) (more bool, err error)) error {
	f.mu.Lock()
	err := f.locked(func() error { return nil })
	end := f.end
	f.mu.Unlock()
	if err != nil {
		return err
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(f.file, 0, end), 1<<16)
	for {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !bytes.Contains(raw, containing) {
			continue
		}
		record, err := Record(raw)
		if err != nil {
			return err
		}
		if more, err := fn(record); err != nil || !more {
			return err
		}
	}
}

// Size returns the length of the file up to its last complete line.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// Close closes the file after syncing it to disk.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.file.Sync(), f.file.Close())
}

// scan checks the lines that follow the last known one.
func (f *File) scan(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var record []byte
		var hash string
		if err == nil {
			record, hash, err = check(raw, f.last)
		}
		if err == nil && f.seen != nil {
			err = f.seen(record)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", f.lines+1, err)
		}
		f.last, f.end, f.lines = hash, f.end+int64(len(raw))+1, f.lines+1
	}
}

// readLine returns a complete line without its line break. io.EOF is the end of the file, including in the
// middle of a line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var all []byte
	for {
		part, err := r.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(all, []byte{'\n'}), nil
		case len(all) > MaxLine:
			return nil, fmt.Errorf("is longer than %d MiB", MaxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// check returns the record and the hash of a line that continues the chain after previous.
func check(raw []byte, previous string) (record []byte, hash string, err error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, "", errors.New("is not a record")
	}
	canonical, err := json.Marshal(l)
	switch {
	case err != nil || !bytes.Equal(canonical, raw):
		return nil, "", errors.New("was changed")
	case l.Previous != previous:
		return nil, "", errors.New("does not follow the previous line: lines were removed, inserted or changed here")
	case l.Hash != hashOf(previous, l.Record):
		return nil, "", errors.New("was changed: its hash does not match")
	}
	return l.Record, l.Hash, nil
}

// Record returns the record of a line, without checking it.
func Record(raw []byte) ([]byte, error) {
	var l line
	err := json.Unmarshal(raw, &l)
	return l.Record, err
}
