package bundle

import (
	"bytes"
	"encoding/binary"
	"io"
)

// A signed bundle consists of the zip, "MCPB_SIG_V1", the length of the signature (uint32, little endian), the
// signature, and "MCPB_SIG_END". Newer packing tools also count all of that as the zip's comment.
const (
	signatureStart = "MCPB_SIG_V1"
	signatureEnd   = "MCPB_SIG_END"
	maxSignature   = 1 << 20
)

// zipPart returns the zip of a bundle file without a signature, and its length. If the packing tool counted the
// signature as a comment, the comment's length reads as 0 again.
func zipPart(r io.ReaderAt, size int64) (io.ReaderAt, int64) {
	cut := signatureOffset(r, size)
	if cut < 0 {
		return r, size
	}
	end := make([]byte, endLen)
	if _, err := r.ReadAt(end, cut-endLen); err != nil || binary.LittleEndian.Uint32(end) != 0x06054b50 {
		return r, cut
	}
	if int64(binary.LittleEndian.Uint16(end[20:])) != (size-cut)&0xffff {
		return r, cut
	}
	return noComment{r, cut - 2}, cut
}

// signatureOffset returns where the signature starts, or -1 if there is none with a plausible length.
func signatureOffset(r io.ReaderAt, size int64) int64 {
	tail := make([]byte, min(size, maxSignature))
	base := size - int64(len(tail))
	if _, err := r.ReadAt(tail, base); err != nil && err != io.EOF {
		return -1
	}
	if !bytes.HasSuffix(tail, []byte(signatureEnd)) {
		return -1
	}
	for search := tail; ; {
		i := bytes.LastIndex(search, []byte(signatureStart))
		if i < 0 {
			return -1
		}
		body := tail[i+len(signatureStart) : len(tail)-len(signatureEnd)]
		if len(body) >= 4 && int(binary.LittleEndian.Uint32(body)) == len(body)-4 && base+int64(i) >= endLen {
			return base + int64(i)
		}
		search = tail[:i]
	}
}

// noComment reads from r, except for the two bytes at an offset, which read as 0.
type noComment struct {
	io.ReaderAt
	at int64
}

func (n noComment) ReadAt(p []byte, off int64) (int, error) {
	read, err := n.ReaderAt.ReadAt(p, off)
	for i := n.at; i < n.at+2; i++ {
		if i >= off && i < off+int64(read) {
			p[i-off] = 0
		}
	}
	return read, err
}
