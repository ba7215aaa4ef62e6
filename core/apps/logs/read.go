package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// pollInterval is how often a followed file is checked for new lines.
const pollInterval = 250 * time.Millisecond

// Tail returns the last n lines of the log at path, including lines in rotated files. It returns none if the log does
// not exist.
func Tail(path string, n int) ([]string, error) {
	var lines []string
	for i := 0; i <= MaxOlder && len(lines) < n; i++ {
		file := path
		if i > 0 {
			file = fmt.Sprintf("%s.%d", path, i)
		}
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		lines = append(split(raw), lines...)
	}
	return lines[max(0, len(lines)-n):], nil
}

func split(raw []byte) []string {
	text := strings.ToValidUTF8(string(bytes.TrimSuffix(raw, []byte("\n"))), "")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Follow sends each line that is written to the log at path from now on. It closes the channel when ctx ends. A slow
// reader delays only itself.
func Follow(ctx context.Context, path string) <-chan string {
	lines := make(chan string)
	f := &follower{path: path, lines: lines}
	f.open(true)
	go func() {
		defer close(lines)
		defer f.close()
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		for f.send(ctx) {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// follower reads a log file that grows and is rotated.
type follower struct {
	path  string
	lines chan<- string

	file   *os.File
	reader *bufio.Reader
	rest   string // an incomplete line
}

// open opens the current file. If atEnd is set, it skips the existing content.
func (f *follower) open(atEnd bool) {
	file, err := os.Open(f.path)
	if err != nil {
		return // it does not exist yet
	}
	if atEnd {
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			_ = file.Close()
			return
		}
	}
	f.file, f.reader, f.rest = file, bufio.NewReader(file), ""
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// send sends the lines written since the last call. It returns false when ctx has ended.
func (f *follower) send(ctx context.Context) bool {
	if f.file == nil {
		f.open(false)
	}
	for f.file != nil {
		part, err := f.reader.ReadString('\n')
		f.rest += part
		if err == nil {
			select {
			case f.lines <- strings.ToValidUTF8(strings.TrimSuffix(f.rest, "\n"), ""):
			case <-ctx.Done():
				return false
			}
			f.rest = ""
			continue
		}
		if !f.wasRotated() {
			return true
		}
		f.close()
		f.open(false)
	}
	return true
}

// wasRotated reports whether path is now a different file.
func (f *follower) wasRotated() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false // the new file does not exist yet
	}
	open, err := f.file.Stat()
	return err != nil || !os.SameFile(now, open)
}
