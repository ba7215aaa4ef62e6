package mcphttp

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

// getStream is the number of a session's GET stream. The stream of a POST has its first call's.
const getStream = 0

// frame is one message of a stream, an event. Its number is the session's, and no two events share one; it is
// 0 where nothing can be resumed.
type frame struct {
	number int64
	text   []byte
}

// journal remembers the last events of a session's streams, so that a client whose connection broke
// can go on where it was (MCP 2025-11-25, basic/transports, resumability). The zero value is ready;
// a session that streams nothing costs nothing.
type journal struct {
	mu    sync.Mutex
	last  int64 // number of the newest event
	kept  []entry
	bytes int
	open  map[int64]*queue // streams that go on: where a client reads on that came back, nil before
}

type entry struct {
	stream int64
	frame
}

// add keeps an event and hands it to the client that came back for its stream.
func (j *journal) add(stream int64, text []byte) frame {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e := frame{j.last, text}
	j.kept, j.bytes = append(j.kept, entry{stream, e}), j.bytes+len(text)
	drop := 0
	for len(j.kept)-drop > maxKept || j.bytes > maxKeptBytes && drop < len(j.kept) {
		j.bytes -= len(j.kept[drop].text)
		j.kept[drop] = entry{}
		drop++
	}
	j.kept = j.kept[drop:]
	if reader := j.goesOn(stream); reader != nil {
		reader.give(e)
	}
	return e
}

// begin says that events will come on a stream.
func (j *journal) begin(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.goesOn(stream)
}

// goesOn notes that a stream goes on, and is where a client reads it that came back.
func (j *journal) goesOn(stream int64) *queue {
	if j.open == nil {
		j.open = map[int64]*queue{}
	}
	reader := j.open[stream]
	j.open[stream] = reader
	return reader
}

// end says that nothing more comes on a stream.
func (j *journal) end(stream int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if reader := j.open[stream]; reader != nil {
		reader.close()
	}
	delete(j.open, stream)
}

// after are the kept events of a stream that came after one.
func (j *journal) after(stream, number int64) (events []frame) {
	for _, e := range j.kept {
		if e.stream == stream && e.number > number {
			events = append(events, e.frame)
		}
	}
	return events
}

// replay gives the kept events of a stream that came after one.
func (j *journal) replay(stream, number int64, to *queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.after(stream, number) {
		to.give(e)
	}
}

// resume lets to read a stream on from after an event: what is kept of it now, and what comes. It is
// false when nothing is known of the stream any more. A client that comes back again takes over
// from itself.
func (j *journal) resume(stream, number int64, to *queue) bool {
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
	for _, e := range j.after(stream, number) {
		to.give(e)
	}
	if !goesOn {
		to.close()
		return true
	}
	if before != nil {
		before.close()
	}
	j.open[stream] = to
	return true
}

// leave ends what resume began, when the client has gone again.
func (j *journal) leave(stream int64, reader *queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open[stream] == reader {
		j.open[stream] = nil
	}
}

// newest is the number of the newest event.
func (j *journal) newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// eventID is how an event is named to a client: its stream and its number.
func eventID(stream, number int64) string {
	return strconv.FormatInt(stream, 10) + "." + strconv.FormatInt(number, 10)
}

// readEventID takes an event's name apart.
func readEventID(id string) (stream, number int64, ok bool) {
	left, right, _ := strings.Cut(id, ".")
	stream, err := strconv.ParseInt(left, 10, 64)
	number, bad := strconv.ParseInt(right, 10, 64)
	return stream, number, err == nil && bad == nil && stream >= 0 && number >= 0
}
