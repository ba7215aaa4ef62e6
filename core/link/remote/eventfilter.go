package remote

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// eventFilter forwards a stream of server-sent events. An invalid message would make the SDK end the session, so the
// filter replaces it with an error for the call that the stream responds to.
type eventFilter struct {
	in        *rpc.EventReader
	source    io.Closer
	discarded *rpc.DiscardLog
	limit     int
	id        func() string // the id of the call that the stream responds to, or "null"
	out       bytes.Buffer
}

// Read implements io.Reader.
func (f *eventFilter) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		e, err := f.in.Next()
		if err != nil {
			return 0, err
		}
		f.write(e)
	}
	return f.out.Read(p)
}

// Close implements io.Closer.
func (f *eventFilter) Close() error { return f.source.Close() }

func (f *eventFilter) write(e rpc.Event) {
	if f.out.Cap() > rpc.KeptBuffer {
		f.out = bytes.Buffer{}
	}
	f.out.Reset()
	switch {
	case e.IsMessage() && len(e.Data) > 0:
		e.Data = f.check(e)
	case e.Over:
		e.Data = nil
	}
	if e.Name != "" {
		fmt.Fprintf(&f.out, "event: %s\n", e.Name)
	}
	if e.HasID && validID(e.ID) {
		fmt.Fprintf(&f.out, "id: %s\n", e.ID)
	}
	if wait, ok := retryAfter(e.Retry); ok {
		fmt.Fprintf(&f.out, "retry: %d\n", wait.Milliseconds())
	}
	if len(e.Data) > 0 {
		for part := range bytes.SplitSeq(e.Data, []byte{'\n'}) {
			f.out.WriteString("data: ")
			f.out.Write(part)
			f.out.WriteByte('\n')
		}
	}
	f.out.WriteByte('\n')
}

// maxEventID is the longest event id, in bytes, that is sent back.
const maxEventID = 4 << 10

// validID reports whether an id can be sent back in the Last-Event-ID header. Invalid ids are dropped, because every
// attempt to resume the stream with them would fail.
func validID(id string) bool { return len(id) <= maxEventID && httpguts.ValidHeaderFieldValue(id) }

// Limits for the delay that a server may request before a stream is reopened. With a shorter delay, a call would send
// requests back to back until it ends.
const (
	shortestRetry = 200 * time.Millisecond
	longestRetry  = time.Minute
)

// retryAfter reads the retry field of an event, in whole milliseconds. ok is false for anything else.
func retryAfter(field string) (wait time.Duration, ok bool) {
	if field == "" || strings.Trim(field, "0123456789") != "" {
		return 0, false
	}
	millis, err := strconv.ParseInt(field, 10, 32)
	if err != nil { // too large
		return longestRetry, true
	}
	return min(max(time.Duration(millis)*time.Millisecond, shortestRetry), longestRetry), true
}

// check returns the event's data if it is a valid message. Otherwise it returns an error for the call that the event
// responds to, or nil if no call is waiting for it.
func (f *eventFilter) check(e rpc.Event) []byte {
	id := f.id()
	data := e.Data
	if e.Over {
		if n, ok := rpc.CallID(e.Data, e.Tail); ok {
			id = fmt.Sprint(n)
		}
		data = make([]byte, f.limit+1)
	} else if _, err := rpc.Scan(data); err == nil {
		return rpc.ValidUTF8(data)
	}
	if id == "null" {
		f.discarded.Add("an event that is not a message")
		return nil
	}
	return messageOrError(data, f.limit, f.discarded, func() string { return id })
}
