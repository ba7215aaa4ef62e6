package audittest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	httpsink "github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// disk is the directory that the processes of a sink share, with faults.
type disk struct {
	plugintest.Backend
	dir   string
	limit atomic.Int64 // maximum length of a file; negative for none
}

func (d *disk) full(length int64) error {
	d.limit.Store(length)
	return nil
}

// appendTo appends to a file as much as fits.
func (d *disk) appendTo(file *os.File, at int64, raw []byte) error {
	limit := d.limit.Load()
	if room := limit - at; limit >= 0 && room < int64(len(raw)) {
		_, _ = file.WriteAt(raw[:max(0, room)], at)
		return errors.New("no space left")
	}
	_, err := file.WriteAt(raw, at)
	return err
}

// sink is a sink that honors the contract: a log of JSON lines to which several processes append. A liar replaces some
// of its functions.
type sink struct {
	*disk
	file *os.File
	dead atomic.Bool // the process was killed

	mu      sync.Mutex
	end     int64
	streams map[string][]audit.Record

	check  func(stream string, records []audit.Record) error
	reach  func(context.Context) error
	lost   func(error) error
	alter  func(*audit.Record) // called before a record is kept
	passes func(kept []audit.Record, r audit.Record) bool
	key    func(stream string) string
	store  func(raw []byte) error
	undo   func() error
	torn   func(line []byte) bool // reports whether a line is incomplete
	shows  func(*page)            // called before a page is read
	write  func(*call) error
	fresh  func() error // reads what other processes wrote
	close  func()
}

// lock locks the sink and its file. Without the file lock, a reader would mistake a line that another process is still
// writing for a torn one.
func (s *sink) lock() (unlock func(), err error) {
	s.mu.Lock()
	if err := syscall.Flock(int(s.file.Fd()), syscall.LOCK_EX); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return func() {
		_ = syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
		s.mu.Unlock()
	}, nil
}

// call is a Write.
type call struct {
	*sink
	ctx     context.Context //nolint:containedctx // of one call
	stream  string
	records []audit.Record
}

func (s *sink) Write(ctx context.Context, stream string, records []audit.Record) error {
	return s.write(&call{s, ctx, stream, slices.Clone(records)})
}

// page is what a Read requests, and the stream.
type page struct {
	kept  []audit.Record
	after uint64
	limit int
}

func (s *sink) Read(_ context.Context, stream string, after uint64, limit int) (all []audit.Record, err error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	err = s.fresh()
	p := page{s.streams[s.key(stream)], after, limit}
	s.shows(&p)
	for _, r := range p.kept {
		if r.Sequence > p.after && len(all) < p.limit {
			all = append(all, r)
		}
	}
	return all, err
}

func newSink(d *disk) (*sink, error) {
	file, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &sink{
		disk: d, file: file, streams: map[string][]audit.Record{}, check: audit.CheckWrite, reach: d.Reach, lost: plugins.Unavailable,
		alter: func(*audit.Record) {},
		passes: func(kept []audit.Record, r audit.Record) bool {
			return len(kept) > 0 && r.Sequence <= kept[len(kept)-1].Sequence
		},
		key:   func(stream string) string { return stream },
		torn:  func(line []byte) bool { return !bytes.HasSuffix(line, []byte("\n")) },
		shows: func(*page) {},
		write: (*call).append,
		close: func() {},
	}
	s.fresh, s.undo = s.follow, func() error { return file.Truncate(s.end) }
	s.store = func(raw []byte) error { return d.appendTo(file, s.end, raw) }
	return s, nil
}

// append is the unmodified write.
func (c *call) append() error {
	if err := c.check(c.stream, c.records); err != nil {
		return err
	}
	if err := c.reach(c.ctx); err != nil {
		return c.lost(err)
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.fresh(); err != nil {
		return err
	}
	var raw []byte
	key := c.key(c.stream)
	kept := slices.Clone(c.streams[key])
	for _, r := range c.records {
		if c.passes(kept, r) {
			continue
		}
		c.alter(&r)
		line, err := json.Marshal(audit.Entry{Stream: key, Record: r})
		if err != nil {
			return err
		}
		raw, kept = append(append(raw, line...), '\n'), append(kept, r)
	}
	if c.dead.Load() {
		return errors.New("killed")
	}
	if len(raw) == 0 {
		return nil
	}
	if err := c.store(raw); err != nil {
		_ = c.undo()
		return c.lost(err)
	}
	c.streams[key], c.end = kept, c.end+int64(len(raw))
	return nil
}

// follow reads what was appended, and removes an incomplete line.
func (s *sink) follow() error {
	info, err := s.file.Stat()
	if err != nil || info.Size() == s.end {
		return err
	}
	raw := make([]byte, info.Size()-s.end)
	if _, err := s.file.ReadAt(raw, s.end); err != nil {
		return err
	}
	for line := range bytes.Lines(raw) {
		if s.torn(line) {
			return s.file.Truncate(s.end)
		}
		var e audit.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		s.streams[e.Stream], s.end = append(s.streams[e.Stream], e.Record), s.end+int64(len(line))
	}
	return nil
}

// open returns a subject with a directory of its own, whose sinks are modified by change.
func open(t *testing.T, change func(*sink)) audittest.Subject {
	t.Helper()
	d := &disk{dir: t.TempDir()}
	d.limit.Store(-1)
	return audittest.Subject{Data: d.dir, Backend: d, Open: func(context.Context) (*audittest.Process, error) {
		s, err := newSink(d)
		if err != nil {
			return nil, err
		}
		change(s)
		unlock, err := s.lock()
		if err != nil {
			return nil, err
		}
		defer unlock()
		end := sync.OnceFunc(func() {
			if !s.dead.Load() {
				s.close()
			}
			_ = s.file.Close()
		})
		return &audittest.Process{Sink: s, Close: end, Limit: d.full, Kill: func() { s.dead.Store(true) }}, s.fresh()
	}}
}

func TestAReaderDoesNotMistakeAWriteInProgressForATornLine(t *testing.T) {
	subject := open(t, func(*sink) {})
	writer, reader := kit.Got(subject.Open(t.Context())).Sink.(*sink), kit.Got(subject.Open(t.Context())).Sink.(*sink)
	line := append(kit.Got(json.Marshal(audit.Entry{Stream: "s", Record: audit.Record{Sequence: 1}})), '\n')
	unlock := kit.Got(writer.lock())
	kit.Must(writer.appendTo(writer.file, 0, line[:9]))
	read := make(chan int, 1)
	go func() {
		all, _ := reader.Read(t.Context(), "s", 0, 1)
		read <- len(all)
	}()
	select {
	case <-read:
		t.Error("the reader did not wait for the writer")
	case <-time.After(100 * time.Millisecond):
	}
	kit.Must(writer.appendTo(writer.file, 9, line[9:]))
	unlock()
	if n := <-read; n != 1 {
		t.Errorf("the reader got %d records", n)
	}
}

// relay is a hop between the built-in http sink and its receiver. It can change the status that the sink sees.
type relay struct{ learns func(status int) int }

func relayed(t *testing.T, change func(*relay)) audittest.Subject {
	t.Helper()
	receiver, hop := &audittest.Receiver{}, &relay{func(status int) int { return status }}
	change(hop)
	collector := httptest.NewServer(receiver)
	t.Cleanup(collector.Close)
	backend, err := kit.NewProxy(collector.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableKeepAlives: true}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://"+backend.Address()+r.URL.Path, bytes.NewReader(body))
		answer, err := client.Do(req)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = answer.Body.Close()
		w.WriteHeader(hop.learns(answer.StatusCode))
	}))
	t.Cleanup(server.Close)
	return audittest.Subject{Receiver: receiver, Backend: backend, Open: func(ctx context.Context) (*audittest.Process, error) {
		s := httpsink.New()
		err := s.Configure(ctx, plugins.Config{JSON: json.RawMessage(`{"url": "` + server.URL + `", "timeout": "15s"}`)})
		return &audittest.Process{Sink: s, Kill: func() {}, Close: func() { _ = s.Close() }}, err
	}}
}

func TestSinksThatForwardRecordsAreJudgedByWhatTheirReceiverHas(t *testing.T) {
	takes := func(statuses func(int) bool) func(*relay) {
		return func(r *relay) {
			r.learns = func(status int) int {
				if statuses(status) {
					return http.StatusOK
				}
				return status
			}
		}
	}
	for lie, change := range map[string]func(*relay){
		"treats every response as OK": takes(func(int) bool { return true }),
		"drops records that its receiver rejects": takes(func(status int) bool {
			return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge
		}),
		"treats a redirect as OK":                   takes(func(status int) bool { return status < 400 }),
		"does not wait for a receiver that is busy": takes(func(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }),
		"nothing wrong":                             func(*relay) {},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			for _, p := range audittest.Properties() {
				if p.Name != audittest.Failing {
					continue
				}
				if outcome := p.Judge(t.Context(), plugintest.Trial(kit.Quick), relayed(t, change)); (outcome.Verdict == kit.Fail) != (lie != "nothing wrong") {
					t.Errorf("%s: %v", outcome.Verdict, outcome.Err)
				}
			}
		})
	}
}
