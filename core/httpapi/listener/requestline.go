package listener

import "bytes"

const versionLength = len("HTTP/1.1")

// requestLines finds request lines that end in a bare line feed among the bytes read from a connection. The HTTP
// library accepts them silently, but other servers may read such a request differently (RFC 9112 section 2.2).
type requestLines struct {
	bare []byte              // the part of the last such line that one read returned; nil if there was no such line
	kept []byte              // bare at the time a request was checked
	tail [versionLength]byte // the last bytes of earlier reads
	held int                 // the number of bytes in tail
}

// scan searches the bytes of one read.
func (l *requestLines) scan(read []byte) {
	var seam [2 * versionLength]byte
	n := copy(seam[:], l.tail[:l.held])
	n += copy(seam[n:], read)
	if at := indexBareLine(read); at >= 0 {
		l.bare = bytes.Clone(read[bytes.LastIndexByte(read[:at], '\n')+1 : at])
	} else if at := indexBareLine(seam[:n]); at >= 0 {
		l.bare = bytes.Clone(seam[:at])
	}
	last := read
	if len(read) < versionLength {
		last = seam[:n]
	}
	l.held = copy(l.tail[:], last[max(0, len(last)-versionLength):])
}

// indexBareLine returns the index of a bare line feed after an HTTP version, or -1 if there is none.
func indexBareLine(text []byte) int {
	for _, version := range []string{"HTTP/1.1\n", "HTTP/1.0\n"} {
		if at := bytes.Index(text, []byte(version)); at >= 0 {
			return at + versionLength
		}
	}
	return -1
}

// endedBare reports whether the request line of a request ended in a bare line feed. It is called between reading the
// headers and reading the body.
func (l *requestLines) endedBare(method, target, version []byte) bool {
	if l.kept = l.bare; l.bare == nil {
		return false
	}
	line := bytes.Join([][]byte{method, target, version}, []byte{' '})
	return bytes.HasSuffix(line, l.bare)
}

// endBody drops lines found since endedBare, because they are part of the body. A line found earlier may belong to a
// request that arrived together with this one.
func (l *requestLines) endBody() { l.bare = l.kept }
