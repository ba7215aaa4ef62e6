package listener

import "bytes"

// versionLength is the length of "HTTP/1.1".
const versionLength = len("HTTP/1.1")

// requestLines finds request lines that end in a bare line feed, among the bytes that a connection
// reads. The HTTP library accepts them and does not report it, while other servers may read such a
// request differently (RFC 9112 section 2.2).
type requestLines struct {
	bare []byte              // the end of the last such line, as much of it as was read at once; nil for none
	kept []byte              // the same, as it was when a request was checked
	tail [versionLength]byte // the last bytes of the reads before
	held int                 // how many of tail there are
}

// scan looks through the bytes of one read.
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

// indexBareLine is where the line feed after an HTTP version stands, -1 when there is none without a
// carriage return.
func indexBareLine(text []byte) int {
	for _, version := range []string{"HTTP/1.1\n", "HTTP/1.0\n"} {
		if at := bytes.Index(text, []byte(version)); at >= 0 {
			return at + versionLength
		}
	}
	return -1
}

// endedBare reports whether the request line of a request ended in a bare line feed. It is called when
// the headers were read and the body was not.
func (l *requestLines) endedBare(method, target, version []byte) bool {
	if l.kept = l.bare; l.bare == nil {
		return false
	}
	line := bytes.Join([][]byte{method, target, version}, []byte{' '})
	return bytes.HasSuffix(line, l.bare)
}

// endBody drops what was found since endedBare: it is part of the body. What was found before may be the
// line of a request that arrived together with this one.
func (l *requestLines) endBody() { l.bare = l.kept }
