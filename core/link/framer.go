package link

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// DefaultMaxLine is the longest line accepted from a bundle. Real apps send views of 4.3 MB.
	DefaultMaxLine = 16 << 20

	readBuffer = 128 << 10 // a line with 64 KB of text in it fits; what is never reached costs no memory
	keepEnd    = 512       // how much of both ends of an over-long line is kept
	keepBuffer = 1 << 20   // a larger buffer is not kept for the next line
)

// framer cuts a stream into lines of bounded length.
type framer struct {
	in    *bufio.Reader
	limit int
	buf   []byte // collects a line longer than in's buffer
}

// line is one line without its end.
type line struct {
	data  []byte
	owned bool  // data is the receiver's to keep; else it is valid until the next line
	over  int64 // for a line over the limit, its length; data is then only its beginning
	tail  []byte
}

func newFramer(in io.Reader, limit int) *framer {
	return &framer{in: bufio.NewReaderSize(in, readBuffer), limit: limit}
}

// next returns the next line. A last line without an end counts.
func (f *framer) next() (line, error) {
	part, err := f.in.ReadSlice('\n')
	if err == nil && len(part)-1 <= f.limit {
		return line{data: trim(part)}, nil
	}
	if cap(f.buf) > keepBuffer {
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
		return line{}, err
	}
	whole := line{data: trim(f.buf), owned: true}
	f.buf = nil
	return whole, nil
}

// collect appends part, doubling the buffer up to the limit.
func (f *framer) collect(part []byte) {
	if need := len(f.buf) + len(part); need > cap(f.buf) {
		grown := make([]byte, len(f.buf), max(need, min(2*cap(f.buf), f.limit+1), 2*readBuffer))
		copy(grown, f.buf)
		f.buf = grown
	}
	f.buf = append(f.buf, part...)
}

// skip reads the rest of an over-long line, of which part is the latest piece, and keeps its ends.
func (f *framer) skip(part []byte, err error) (line, error) {
	length := int64(len(f.buf))
	head := append(bytes.Clone(f.buf[:min(len(f.buf), keepEnd)]), part[:min(len(part), keepEnd)]...)
	head = head[:min(len(head), keepEnd)]
	tail := bytes.Clone(f.buf[max(0, len(f.buf)-keepEnd):])
	for {
		length += int64(len(part))
		tail = append(tail, part[max(0, len(part)-keepEnd):]...)
		tail = append(tail[:0], tail[max(0, len(tail)-keepEnd):]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = f.in.ReadSlice('\n')
	}
	return line{data: head, tail: trim(tail), over: length}, nil
}

// trim takes the line end away, and a carriage return before it.
func trim(data []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\r'})
}
