package hashchain

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// purgeInterval is how often closed files are checked for deletion.
const purgeInterval = time.Hour

// SetOptions configure a Set.
type SetOptions struct {
	Durable  bool          // records are on the disk before Append returns
	MaxBytes int64         // a file of this size is closed and the next one started; 0 means no limit
	MaxAge   time.Duration // the same for a file whose first record is this old; 0 means no limit
	Keep     time.Duration // a closed file is deleted when its last record is this old; 0 keeps all files

	// Time returns when a record was made.
	Time func(record []byte) (time.Time, error)
	// Deletion returns the record that is appended before a closed file is deleted. It contains the file's name
	// and the hash of its last line.
	Deletion func(name, hash string) ([]byte, error)
	// Problem is called when a file could not be closed or deleted; records are still appended.
	Problem func(error)
}

// Set is a file that is closed when it reaches a size or age, and continued in the next one. The first line of each file
// contains the hash of the last line of the previous file. Closed files are in the same directory and have a
// number after the name. Only one process at a time may append to a set.
type Set struct {
	path    string
	options SetOptions

	mu     sync.Mutex
	file   *File
	number int       // number of the current file: one more than the newest closed file
	began  time.Time // time of its first record; zero if there is none
	purged time.Time // when closed files were last checked
}

// OpenSet opens or creates the current file of a set and continues its chain, like Open.
func OpenSet(path string, o SetOptions) (*Set, error) {
	s := &Set{path: path, options: o}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.rotate(now)
	s.purge(now)
	return s, nil
}

func (s *Set) open() error {
	closed, err := closedFiles(s.path)
	if err != nil {
		return err
	}
	previous := ""
	s.number = 1
	if n := len(closed); n > 0 {
		s.number = closed[n-1].number + 1
		if _, previous, err = lastLine(closed[n-1].path); err != nil {
			return fmt.Errorf("%s: %w", closed[n-1].path, err)
		}
	}
	if s.file, err = openAfter(s.path, s.options.Durable, nil, previous); err != nil {
		return err
	}
	if s.file.Size() == 0 {
		return nil
	}
	if s.began, err = s.firstTime(); err != nil {
		return errors.Join(fmt.Errorf("%s: line 1: %w", s.path, err), s.file.Close())
	}
	return nil
}

// firstTime returns the time of the first record of the current file.
func (s *Set) firstTime() (time.Time, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = file.Close() }()
	raw, err := readLine(bufio.NewReaderSize(file, 1<<16))
	if err != nil {
		return time.Time{}, err
	}
	record, err := Record(raw)
	if err != nil {
		return time.Time{}, err
	}
	return s.options.Time(record)
}

// Append writes a record, the output of json.Marshal.
func (s *Set) Append(record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.rotate(now)
	if err := s.append(record); err != nil {
		return err
	}
	if now.Sub(s.purged) >= purgeInterval {
		s.purge(now)
	}
	return nil
}

// append writes a record to the current file. The caller holds s.mu.
func (s *Set) append(record []byte) error {
	if err := s.file.Append(func() ([][]byte, error) { return [][]byte{record}, nil }); err != nil {
		return err
	}
	if !s.began.IsZero() {
		return nil
	}
	at, err := s.options.Time(record)
	s.began = at
	return err
}

// rotate closes the current file if it is too large or too old, and starts the next one. If that fails, records
// continue in the current file. The caller holds s.mu.
func (s *Set) rotate(now time.Time) {
	o, size := s.options, s.file.Size()
	large := o.MaxBytes > 0 && size >= o.MaxBytes
	old := o.MaxAge > 0 && now.Sub(s.began) >= o.MaxAge
	if size == 0 || !large && !old {
		return
	}
	if err := s.next(); err != nil {
		o.Problem(fmt.Errorf("could not close %s and start the next file: %w", s.path, err))
	}
}

// next renames the current file and creates a new one under its name.
func (s *Set) next() error {
	name := nameOf(s.path, s.number)
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s already exists", name)
	}
	if err := os.Rename(s.path, name); err != nil {
		return err
	}
	file, err := openAfter(s.path, s.options.Durable, nil, s.file.last)
	if err != nil {
		return errors.Join(err, os.Rename(name, s.path))
	}
	err = s.file.Close()
	s.file, s.number, s.began = file, s.number+1, time.Time{}
	return errors.Join(err, syncFolder(filepath.Dir(s.path)))
}

// purge deletes closed files older than the retention, oldest first, and appends a record about each before
// deleting it. The caller holds s.mu.
func (s *Set) purge(now time.Time) {
	s.purged = now
	if s.options.Keep <= 0 {
		return
	}
	if err := s.deleteBefore(now.Add(-s.options.Keep)); err != nil {
		s.options.Problem(fmt.Errorf("could not delete old files of %s: %w", s.path, err))
	}
}

func (s *Set) deleteBefore(oldest time.Time) error {
	closed, err := closedFiles(s.path)
	if err != nil {
		return err
	}
	for _, c := range closed {
		last, hash, err := lastLine(c.path)
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		at, err := s.options.Time(last)
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		if !at.Before(oldest) {
			return nil
		}
		record, err := s.options.Deletion(filepath.Base(c.path), hash)
		if err == nil {
			err = s.append(record)
		}
		if err == nil {
			err = os.Remove(c.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// End returns the number of the current file, and its length up to its last complete line.
func (s *Set) End() (number int, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number, s.file.Size()
}

// OpenNumber opens a file of the set for reading. The error is os.ErrNotExist if it was deleted.
func (s *Set) OpenNumber(number int) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == s.number {
		return os.Open(s.path)
	}
	return os.Open(nameOf(s.path, number))
}

// Close closes the current file after syncing it to disk.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}
