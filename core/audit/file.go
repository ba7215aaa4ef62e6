package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// maxLine bounds one line of an audit file: arguments of calls are at most 16 MiB.
const maxLine = 20 << 20

// line is one line of an audit file. Hash is of Previous and the record's bytes.
type line struct {
	Record   json.RawMessage `json:"record"`
	Previous string          `json:"previous"` // the hash of the line before; "" for the first
	Hash     string          `json:"hash"`
}

func hashOf(previous string, record []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, previous)
	_, _ = h.Write([]byte{'\n'})
	_, _ = h.Write(record)
	return hex.EncodeToString(h.Sum(nil))
}

// File is a sink that appends to a file, one line for each record, chained by hash.
type File struct {
	sync bool

	mu   sync.Mutex
	file *os.File
	last string
	end  int64 // of the last whole line
}

// OpenFile opens or creates an audit file and continues its chain. With durable set, a record is on the
// disk before Write returns. A last line that a crash cut short is removed.
func OpenFile(path string, durable bool) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit.file: %w", err)
	}
	end, last, err := scan(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("audit.file %s: %w", path, err), file.Close())
	}
	return &File{sync: durable, file: file, last: last, end: end}, nil
}

// Write implements Sink.
func (f *File) Write(_ context.Context, r core.AuditRecord) error {
	record, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := line{Record: record, Previous: f.last, Hash: hashOf(f.last, record)}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	_, err = f.file.Write(raw)
	if err == nil && f.sync {
		err = f.file.Sync()
	}
	if err != nil { // nothing of a line that was not written may stay in the chain
		_, seekErr := f.file.Seek(f.end, io.SeekStart)
		return errors.Join(err, f.file.Truncate(f.end), seekErr)
	}
	f.last, f.end = next.Hash, f.end+int64(len(raw))
	return nil
}

// Close implements Sink.
func (f *File) Close(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.file.Sync(), f.file.Close())
}

// scan checks the lines of a file and returns where the last whole one ends, and its hash.
func scan(r io.Reader) (end int64, last string, err error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return end, last, nil
		}
		if err != nil {
			return end, last, fmt.Errorf("line %d: %w", number, err)
		}
		if last, err = check(raw, last); err != nil {
			return end, last, fmt.Errorf("line %d: %w", number, err)
		}
		end += int64(len(raw)) + 1
	}
}

// readLine returns a whole line without its end. io.EOF is the end of the file, also in a line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var all []byte
	for {
		part, err := r.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(all, []byte{'\n'}), nil
		case len(all) > maxLine:
			return nil, errors.New("is longer than 20 MiB")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// check returns the hash of a line that continues the chain after previous.
func check(raw []byte, previous string) (string, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return "", errors.New("is not a record")
	}
	canonical, err := json.Marshal(l)
	switch {
	case err != nil || !bytes.Equal(canonical, raw):
		return "", errors.New("was changed")
	case l.Previous != previous:
		return "", errors.New("does not follow the line before: lines were removed, inserted or changed here")
	case l.Hash != hashOf(previous, l.Record):
		return "", errors.New("was changed: its hash is wrong")
	}
	return l.Hash, nil
}

// Summary is what Verify found.
type Summary struct {
	Records int
	Hash    string // of the last record
}

// Verify checks the chain of an audit file. The error names the first line that is wrong.
func Verify(r io.Reader) (s Summary, err error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		raw, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(raw) == 0 {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("line %d: is cut short", s.Records+1)
		}
		if s.Hash, err = check(bytes.TrimSuffix(raw, []byte{'\n'}), s.Hash); err != nil {
			return s, fmt.Errorf("line %d: %w", s.Records+1, err)
		}
		s.Records++
	}
}
