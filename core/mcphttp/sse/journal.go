package sse

import (
	"strconv"
	"strings"
	"sync"
)

// How many events and bytes a session keeps for clients that lose a stream. The oldest are dropped first.
const (
	maxKept      = 256
	maxKeptBytes = 256 << 10
)

// GETStream is the number of a session's GET stream. The stream of a POST has the number of its first call.
const GETStream = 0

// Journal records the last events of a session's streams, so that a client whose connection broke can resume (MCP
// 2025-11-25, basic/transports, resumability). The zero value is ready to use. A session that streams nothing takes no
// memory.
type Journal struct {
	mu    sync.Mutex
	last  int64 // number of the newest event
	kept  []entry
	bytes int
	open  map[int64]*Queue // open streams, with the queue of a client that resumed the stream, or nil
}

type entry struct {
	stream int64
	Event
}

// StartAfter makes the first event follow the given number. It must be called before anything is recorded.
func (j *Journal) StartAfter(number int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = number
}

// Add records an event and passes it to the client that resumed its stream, if any.
func (j *Journal) Add(stream int64, text []byte) Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e := Event{j.last, text}
	j.kept, j.bytes = append(j.kept, entry{stream, e}), j.bytes+len(text)
	drop := 0
	for len(j.kept)-drop > maxKept || j.bytes > maxKeptBytes && drop < len(j.kept) {
		j.bytes -= len(j.kept[drop].Text)
		j.kept[drop] = entry{}
		drop++
	}
	j.kept = j.kept[drop:]
	if reader := j.keepOpen(stream); reader != nil {
		reader.replay(e)
	}
	return e
}

// begin records that a stream is open.
func (j *Journal) begin(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keepOpen(stream)
}

// keepOpen records that a stream is open. It returns the queue of the client that resumed it, or nil.
func (j *Journal) keepOpen(stream int64) *Queue {
	if j.open == nil {
		j.open = map[int64]*Queue{}
	}
	reader := j.open[stream]
	j.open[stream] = reader
	return reader
}

// end records that a stream has ended.
func (j *Journal) end(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if reader := j.open[stream]; reader != nil {
		reader.Close()
	}
	delete(j.open, stream)
}

// after returns the recorded events of a stream after the given number.
func (j *Journal) after(stream, number int64) (events []Event) {
	for _, e := range j.kept {
		if e.stream == stream && e.Number > number {
			events = append(events, e.Event)
		}
	}
	return events
}

// Replay queues the recorded events of a stream after the given number.
func (j *Journal) Replay(stream, number int64, to *Queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.after(stream, number) {
		to.replay(e)
	}
}

// Resume continues a stream after the given event: it queues the recorded events, then later ones as they arrive. It
// returns false if the stream is no longer known. If a client resumes a stream twice, only the second reader gets
// events.
func (j *Journal) Resume(stream, number int64, to *Queue) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, continues := j.open[stream]
	known := continues
	for _, e := range j.kept {
		known = known || e.stream == stream
	}
	if !known || number > j.last {
		return false
	}
	to.stream = stream
	for _, e := range j.after(stream, number) {
		to.replay(e)
	}
	if !continues {
		to.Close()
		return true
	}
	if before != nil {
		before.Close()
	}
	j.open[stream] = to
	return true
}

// Release undoes Resume when the client has disconnected again.
func (j *Journal) Release(stream int64, reader *Queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open[stream] == reader {
		j.open[stream] = nil
	}
}

// Newest returns the number of the newest event.
func (j *Journal) Newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// EventID returns the ID of an event as sent to clients: STREAM.NUMBER.
func EventID(stream, number int64) string {
	return strconv.FormatInt(stream, 10) + "." + strconv.FormatInt(number, 10)
}

// ParseEventID parses an ID that EventID returned.
func ParseEventID(id string) (stream, number int64, ok bool) {
	left, right, _ := strings.Cut(id, ".")
	stream, err := strconv.ParseInt(left, 10, 64)
	number, bad := strconv.ParseInt(right, 10, 64)
	return stream, number, err == nil && bad == nil && stream >= 0 && number >= 0
}
