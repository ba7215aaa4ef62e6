package framing

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// The bounds of lines.
const (
	// DefaultMaxLine is the longest line accepted from a bundle. Real apps send views of 4.3 MB.
	DefaultMaxLine = 16 << 20

	readBuffer = 128 << 10 // a line with 64 KB of text fits; pages that are never written cost no memory
	KeptEnd    = 512       // bytes of both ends of an over-long line that are kept
	KeptBuffer = 2 << 20   // larger buffers are not used again
)

// LineReader splits a stream into lines of bounded length.
type LineReader struct {
	in    *bufio.Reader
	limit int
	buf   []byte // collects a line longer than in's buffer
}

// Line is one line without its end.
type Line struct {
	Data  []byte
	Owned bool   // Data may be kept; otherwise it is valid until the next line
	Over  int64  // the length of a line over the limit, of which Data is the beginning; else 0
	Tail  []byte // the end of a line over the limit
}

// NewLineReader returns a reader of lines of at most limit bytes.
func NewLineReader(in io.Reader, limit int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, readBuffer), limit: limit}
}

// Next returns the next line. A last line without an end counts.
func (f *LineReader) Next() (Line, error) {
	part, err := f.in.ReadSlice('\n')
	if err == nil && len(part)-1 <= f.limit {
		return Line{Data: trim(part)}, nil
	}
	if cap(f.buf) > KeptBuffer {
		f.buf = nil
	}
	f.buf = f.buf[:0]
	for {
		allowed := f.limit
		if err == nil {
			allowed++ // the line end does not count
		}
		if len(f.buf)+len(part) > allowed {
			return f.skip(part, err)
		}
		f.collect(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = f.in.ReadSlice('\n')
	}
	if err != nil && len(f.buf) == 0 {
		return Line{}, err
	}
	return Line{Data: bytes.Clone(trim(f.buf)), Owned: true}, nil
}

// collect appends part, doubling the buffer up to the limit.
func (f *LineReader) collect(part []byte) {
	if need := len(f.buf) + len(part); need > cap(f.buf) {
		grown := make([]byte, len(f.buf), max(need, min(2*cap(f.buf), f.limit+1), 2*readBuffer))
		copy(grown, f.buf)
		f.buf = grown
	}
	f.buf = append(f.buf, part...)
}

// skip reads the rest of an over-long line, of which part is the latest piece, and keeps both ends.
func (f *LineReader) skip(part []byte, err error) (Line, error) {
	length := int64(len(f.buf))
	head := append(bytes.Clone(f.buf[:min(len(f.buf), KeptEnd)]), part[:min(len(part), KeptEnd)]...)
	head = head[:min(len(head), KeptEnd)]
	tail := bytes.Clone(f.buf[max(0, len(f.buf)-KeptEnd):])
	for {
		length += int64(len(part))
		tail = append(tail, part[max(0, len(part)-KeptEnd):]...)
		tail = append(tail[:0], tail[max(0, len(tail)-KeptEnd):]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = f.in.ReadSlice('\n')
	}
	return Line{Data: head, Tail: trim(tail), Over: length}, nil
}

// trim removes the line end, and a carriage return before it.
func trim(data []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\r'})
}
