package sse

import (
	"strconv"
	"strings"
	"sync"
)

// What a session keeps of its streams for a client that lost one; the oldest goes first.
const (
	maxKept      = 256
	maxKeptBytes = 256 << 10
)

// GETStream is the number of a session's GET stream. The stream of a POST has its first call's.
const GETStream = 0

// Journal records the last events of a session's streams, so that a client whose connection broke can
// resume (MCP 2025-11-25, basic/transports, resumability). The zero value is ready; a session that
// streams nothing costs nothing.
type Journal struct {
	mu    sync.Mutex
	last  int64 // number of the newest event
	kept  []entry
	bytes int
	open  map[int64]*Queue // streams that go on: where a client that came back reads, nil before it does
}

type entry struct {
	stream int64
	Event
}

// StartAfter makes the first event come after a number. Nothing was recorded yet.
func (j *Journal) StartAfter(number int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = number
}

// Add records an event and hands it to the client that resumed its stream.
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

// begin records that events will come on a stream.
func (j *Journal) begin(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keepOpen(stream)
}

// keepOpen notes that a stream goes on, and returns the queue of the client that resumed it, nil for
// none.
func (j *Journal) keepOpen(stream int64) *Queue {
	if j.open == nil {
		j.open = map[int64]*Queue{}
	}
	reader := j.open[stream]
	j.open[stream] = reader
	return reader
}

// end records that nothing more comes on a stream.
func (j *Journal) end(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if reader := j.open[stream]; reader != nil {
		reader.Close()
	}
	delete(j.open, stream)
}

// after returns the recorded events of a stream that came after one.
func (j *Journal) after(stream, number int64) (events []Event) {
	for _, e := range j.kept {
		if e.stream == stream && e.Number > number {
			events = append(events, e.Event)
		}
	}
	return events
}

// Replay queues the recorded events of a stream that came after one.
func (j *Journal) Replay(stream, number int64, to *Queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.after(stream, number) {
		to.replay(e)
	}
}

// Resume reads a stream on from after an event: what is recorded of it now, and what comes. It returns
// false when nothing is known of the stream any more. A client that resumes a second time takes over
// from its first reader.
func (j *Journal) Resume(stream, number int64, to *Queue) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, goesOn := j.open[stream]
	known := goesOn
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
	if !goesOn {
		to.Close()
		return true
	}
	if before != nil {
		before.Close()
	}
	j.open[stream] = to
	return true
}

// Release ends what Resume began, when the client has left again.
func (j *Journal) Release(stream int64, reader *Queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open[stream] == reader {
		j.open[stream] = nil
	}
}

// Newest is the number of the newest event.
func (j *Journal) Newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// EventID is how an event is named to a client: its stream and its number.
func EventID(stream, number int64) string {
	return strconv.FormatInt(stream, 10) + "." + strconv.FormatInt(number, 10)
}

// ParseEventID takes the name of an event apart.
func ParseEventID(id string) (stream, number int64, ok bool) {
	left, right, _ := strings.Cut(id, ".")
	stream, err := strconv.ParseInt(left, 10, 64)
	number, bad := strconv.ParseInt(right, 10, 64)
	return stream, number, err == nil && bad == nil && stream >= 0 && number >= 0
}
