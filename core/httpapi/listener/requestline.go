package listener

import "bytes"

// versionLength is the length of "HTTP/1.1".
const versionLength = len("HTTP/1.1")

// requestLines finds request lines that end in a bare line feed, among the bytes that a connection
// reads. The HTTP library accepts them and does not report it, while other servers may read such a
// request differently (RFC 9112 section 2.2).
type requestLines struct {
	bare []byte              // the end of the last such line, as much of it as was read at once; nil for none
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

// endedBare reports whether the request line of a request ended in a bare line feed.
func (l *requestLines) endedBare(method, target, version []byte) bool {
	if l.bare == nil {
		return false
	}
	line := bytes.Join([][]byte{method, target, version}, []byte{' '})
	return bytes.HasSuffix(line, l.bare)
}

// forget is called when a request was read whole: what was found since is part of its body.
func (l *requestLines) forget() { l.bare = nil }
