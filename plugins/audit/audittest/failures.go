package audittest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// endings kills processes right after a response, in the middle of a write, and with part of a write in their files.
func endings(ctx context.Context, t *kit.Trial, s Subject) {
	w := s.begin(ctx, t)
	defer w.end()
	r, one := t.Rand(0), newStream()
	w.write(one, one.next(3, 1))
	parts := w.torn(r, one)
	for i := range t.Count(10) {
		w.write(one, one.next(1+r.IntN(30), 1))
		w.restart(i%3 != 2)
		w.check(one, durable)
		w.interrupted(one, time.Duration(r.IntN(20_000))*time.Microsecond)
	}
	if files := kit.Got(contents(s.Data)); len(files) == 0 && s.Backend == nil && !s.Fixed {
		kit.Must(kit.CannotJudge("the kit could not put part of a write into the sink's files: put ${data} in place of its folder in the settings, or give --backend HOST:PORT, or --backend none if it keeps no files"))
	}
	t.Cover("%d processes that were killed after a response or during a write, and %d that found part of a write in a file", 2*t.Count(10), parts)
}

// interrupted kills the process shortly after a write has started.
func (w *world) interrupted(s *stream, moment time.Duration) {
	batch := s.next(100, 1)
	w.note("Write to %.20q: %s; kill -9 after %s", s.name, numbers(batch), moment)
	limited, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- w.p.Sink.Write(limited, s.name, batch) }()
	timer := time.NewTimer(moment)
	select {
	case err := <-answered:
		if answered <- err; err == nil {
			s.keep(batch)
		}
	case <-timer.C:
	}
	s.perhaps = batch
	w.p.Kill()
	if <-answered == nil {
		s.keep(batch)
	}
	w.restart(false)
	w.check(s, durable)
	w.insist(s, batch)
	w.check(s, keptOnce)
}

// contents returns the contents of the files in a directory, by path.
func contents(dir string) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		all[path], err = os.ReadFile(path)
		return err
	})
	return all, err
}

// grown returns the file that a write has extended. ok is false if the write changed anything else.
func grown(before, after map[string][]byte) (path string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if bytes.Equal(before[name], after[name]) {
			continue
		}
		if path != "" || !bytes.HasPrefix(after[name], before[name]) {
			return "", false
		}
		path = name
	}
	return path, path != "" && len(before) <= len(after)
}

// halt kills the process without starting another.
func (w *world) halt() {
	w.p.Kill()
	w.p.Close()
	w.p = &Process{Kill: func() {}, Close: func() {}}
}

// torn leaves prefixes of a write in the file that it extended, as if the process had been killed at that point. It
// returns how many it tried: all, or a sample of a long write.
func (w *world) torn(r *rand.Rand, s *stream) (n int) {
	if w.Data == "" {
		return 0
	}
	batch := s.next(3, 1)
	w.halt()
	before := kit.Got(contents(w.Data))
	w.p = kit.Got(w.Open(w.ctx))
	kit.Must(w.p.Sink.Write(w.ctx, s.name, batch))
	w.halt()
	after := kit.Got(contents(w.Data))
	path, ok := grown(before, after)
	if !ok { // not a log file, so any part of the batch may have been kept
		s.keep(batch)
		w.restart(false)
		return 0
	}
	was, whole := before[path], after[path]
	added := len(whole) - len(was)
	steps := r.Perm(added)
	slices.Sort(steps[:min(added, w.t.Count(60))])
	steps = append(steps[:min(added, w.t.Count(60))], added-1, added-2)
	for _, part := range steps {
		w.halt()
		kit.Must(os.WriteFile(path, whole[:len(was)+max(0, part)], 0o600))
		n, w.history = n+1, []string{fmt.Sprintf("Write to %.20q: %s; kill -9 when %d of its %d bytes are in %s", s.name, numbers(batch), part, added, filepath.Base(path))}
		try := &stream{name: s.name, kept: slices.Clip(s.kept), perhaps: batch}
		w.restart(false)
		w.check(try, durable)
		w.insist(try, batch)
		w.check(try, keptOnce)
		w.write(try, try.next(1, 1))
		w.restart(true)
		w.check(try, durable)
	}
	s.keep(batch)
	w.halt()
	kit.Must(os.WriteFile(path, whole, 0o600))
	w.restart(false)
	return n
}

// failing makes the backend unavailable in every way that the subject supports, and fills the disk.
func failing(ctx context.Context, t *kit.Trial, s Subject) {
	w := s.begin(ctx, t)
	defer w.end()
	one := newStream()
	w.write(one, one.next(3, 1))
	past, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	w.fails(past, one, one.next(2, 1), patience, true)
	w.settles(one)
	full := w.full(one)
	switch {
	case s.Backend != nil:
		w.outages(one)
	case s.Fixed, full > 0:
		t.Cover("a deadline that has passed, and a disk that was full after %d different parts of a write", full)
	default:
		kit.Must(kit.CannotJudge("the kit was not given a way to make writes fail: put ${data} in place of the sink's folder in the settings, or give --backend HOST:PORT, or --backend none if it has neither files nor a backend"))
	}
	w.restart(true)
	w.check(one, durable) // stopping may lose data that was only in memory
}

// outages makes the backend unavailable, and breaks its connections.
func (w *world) outages(s *stream) {
	for i := range w.t.Count(5) {
		w.note("the backend is unreachable")
		w.duringOutage(w.Backend.Stop, s, 2+i, false)
		w.note("the backend does not respond")
		w.duringOutage(w.Backend.Stall, s, 2+i, false)
	}
	if w.Receiver != nil {
		for _, status := range []int{300, 302, 307, 400, 401, 403, 404, 413, 429, 500, 503} {
			w.note("the receiver responds with %d", status)
			w.duringOutage(func(context.Context) error { w.Receiver.refuse(status); return nil }, s, 2, status < 400) // a sink may follow a redirect
		}
	}
	cuts := 0
	if cutter, ok := w.Backend.(kit.Cutter); ok {
		before := cutter.Writes()
		w.insist(s, s.next(20, 1))
		for pieces := cutter.Writes() - before; int64(cuts) < 2*max(1, min(pieces, 20)); cuts++ {
			w.note("the connections break %s piece %d of what is sent", []string{"after", "before"}[cuts%2], cuts/2+1)
			cutter.Cut(int64(cuts/2+1), cuts%2 == 1)
			w.fails(w.ctx, s, s.next(20, 1), timeout/3, true)
			kit.Must(w.Backend.Start(w.ctx))
			w.settles(s)
		}
	}
	w.t.Cover("a backend that is unreachable or does not respond, and %d connections that broke at different points of a write", cuts)
}

// settles repeats what was not acknowledged, and compares the sink with the model.
func (w *world) settles(s *stream) {
	if again := s.perhaps; len(again) > 0 {
		w.insist(s, again)
	}
	w.history = w.history[max(0, len(w.history)-4):]
	w.check(s, keptOnce)
}

// duringOutage writes while stop has made the backend unavailable, and again when it is back.
func (w *world) duringOutage(stop func(context.Context) error, s *stream, n int, mayWork bool) {
	err := stop(w.ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	kit.Must(err)
	err = kit.Catch(func() { w.fails(w.ctx, s, s.next(n, 1), time.Second, mayWork) })
	if w.Receiver != nil {
		w.Receiver.refuse(0)
	}
	kit.Must(errors.Join(err, w.Backend.Start(context.WithoutCancel(w.ctx))))
	if n%2 == 1 { // records that are stored late must not interfere with the repeated ones
		kit.Must(kit.Pause(w.ctx, 2*time.Second))
	}
	w.settles(s)
}

// full fills the disk after different numbers of bytes, and returns how many writes failed.
func (w *world) full(s *stream) (n int) {
	if w.Data == "" || w.p.Limit == nil {
		return 0
	}
	for _, part := range []int64{0, 1, 2, 50, 150, 250, 300, 400, 600, 900, 1200} {
		files, length := kit.Got(contents(w.Data)), 0
		if len(files) == 0 {
			return 0
		}
		for _, content := range files {
			length = max(length, len(content))
		}
		w.note("the disk is full after %d further bytes", part)
		err := w.p.Limit(int64(length) + part)
		if errors.Is(err, errors.ErrUnsupported) {
			return n
		}
		kit.Must(err)
		err = kit.Catch(func() { w.fails(w.ctx, s, s.next(3, 1), timeout/3, true) })
		kit.Must(errors.Join(err, w.p.Limit(-1)))
		if len(s.perhaps) > 0 {
			n++
			w.check(s, onlyFirst)
		}
		w.settles(s)
	}
	return n
}
