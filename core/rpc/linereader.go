package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Limits on lines.
const (
	// DefaultMaxLine is the longest line, in bytes, that is accepted from a bundle. Real apps send views of 4.3
	// MB.
	DefaultMaxLine = 16 << 20

	readBuffer = 128 << 10 // a line with 64 KB of text fits; pages never written to cost no memory
	KeptEnd    = 512       // bytes kept from each end of an over-long line
	KeptBuffer = 2 << 20   // larger buffers are not reused
	chunkSize  = 256 << 10 // a long line is collected in chunks: doubling a buffer would take twice the size
)

// LineReader splits a stream into lines of bounded length.
type LineReader struct {
	in    *bufio.Reader
	limit int

	// A line longer than in's buffer is collected in the first used chunks, which hold size bytes in total.
	chunks [][]byte
	used   int
	size   int
}

// Line is one line without its line ending.
type Line struct {
	Data  []byte
	Owned bool   // Data may be kept; otherwise it is valid until the next line
	Over  int64  // the length of a line over the limit, with its start in Data; otherwise 0
	Tail  []byte // the end of a line over the limit
}

// NewLineReader returns a reader for lines of at most limit bytes.
func NewLineReader(in io.Reader, limit int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, readBuffer), limit: limit}
}

// Next returns the next line. It also returns a last line without a line ending.
func (f *LineReader) Next() (Line, error) {
	part, err := f.in.ReadSlice('\n')
	if err == nil && len(part)-1 <= f.limit {
		return Line{Data: trim(part)}, nil
	}
	f.reset()
	for {
		allowed := f.limit
		if err == nil {
			allowed++ // the line ending is not counted
		}
		if f.size+len(part) > allowed {
			return f.skip(part, err)
		}
		f.collect(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = f.in.ReadSlice('\n')
	}
	if err != nil && f.size == 0 {
		return Line{}, err
	}
	return Line{Data: trim(f.collected()), Owned: true}, nil
}

// reset discards the previous line, and all chunks except those worth keeping.
func (f *LineReader) reset() {
	f.chunks = f.chunks[:min(len(f.chunks), KeptBuffer/chunkSize)]
	clear(f.chunks[len(f.chunks):cap(f.chunks)])
	f.used, f.size = 0, 0
}

// collect adds part to the line.
func (f *LineReader) collect(part []byte) {
	f.size += len(part)
	for len(part) > 0 {
		if f.used == 0 || len(f.chunks[f.used-1]) == chunkSize {
			if f.used == len(f.chunks) {
				f.chunks = append(f.chunks, make([]byte, 0, chunkSize))
			}
			f.chunks[f.used] = f.chunks[f.used][:0]
			f.used++
		}
		last := &f.chunks[f.used-1]
		n := min(len(part), chunkSize-len(*last))
		*last = append(*last, part[:n]...)
		part = part[n:]
	}
}

// collected returns a copy of the line.
func (f *LineReader) collected() []byte {
	line := make([]byte, 0, f.size)
	for _, chunk := range f.chunks[:f.used] {
		line = append(line, chunk...)
	}
	return line
}

// ends returns copies of both ends of the collected data.
func (f *LineReader) ends() (head, tail []byte) {
	for i, chunk := range f.chunks[:f.used] {
		if i == 0 {
			head = bytes.Clone(chunk[:min(len(chunk), KeptEnd)])
		}
		if i >= f.used-2 { // the last one may be shorter than the end to keep
			tail = append(tail, chunk[max(0, len(chunk)-KeptEnd):]...)
		}
	}
	return head, tail
}

// skip reads the rest of an over-long line and keeps both ends. part is the piece read last.
func (f *LineReader) skip(part []byte, err error) (Line, error) {
	length := int64(f.size)
	head, tail := f.ends()
	head = append(head, part[:min(len(part), KeptEnd)]...)
	head = head[:min(len(head), KeptEnd)]
	for {
		length += int64(len(part))
		tail = append(tail, part[max(0, len(part)-KeptEnd):]...)
		tail = append(tail[:0], tail[max(0, len(tail)-KeptEnd):]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = f.in.ReadSlice('\n')
	}
	return Line{Data: trim(head), Tail: trim(tail), Over: length}, nil
}

// trim removes the line ending, including a carriage return.
func trim(data []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\r'})
}
