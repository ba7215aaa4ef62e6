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
func endings(ctx context.Context, t *kit.Trial, s Subject) error {
	w, err := s.begin(ctx, t)
	if err != nil {
		return err
	}
	defer func() { w.end() }()
	r, one := t.Rand(0), newStream()
	if err := w.write(ctx, one, one.next(3, 1)); err != nil {
		return err
	}
	parts, err := w.torn(ctx, r, one)
	if err != nil {
		return err
	}
	for i := range t.Count(10) {
		if err := w.write(ctx, one, one.next(1+r.IntN(30), 1)); err != nil {
			return err
		}
		if err := w.again(ctx, i%3 != 2); err != nil {
			return err
		}
		if err := w.check(ctx, one, durable); err != nil {
			return err
		}
		if err := w.interrupted(ctx, one, time.Duration(r.IntN(20_000))*time.Microsecond); err != nil {
			return err
		}
	}
	if files, err := contents(s.Data); err != nil || len(files) == 0 && s.Backend == nil && !s.Fixed {
		if err != nil {
			return err
		}
		return kit.CannotJudge("a part of a write could not be put into the files of the sink: write ${data} in the settings where its folder belongs, or give --backend HOST:PORT, or --backend none if it keeps no files")
	}
	t.Cover("%d processes that were killed after an answer or during a write, and %d that found a part of a write in a file", 2*t.Count(10), parts)
	return nil
}

// interrupted kills the process a moment after a write has started.
func (w *world) interrupted(ctx context.Context, s *stream, moment time.Duration) error {
	batch := s.next(100, 1)
	w.note("Write to %.20q: %s; kill -9 after %s", s.name, numbers(batch), moment)
	limited, cancel := context.WithTimeout(ctx, timeout)
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
	if err := w.again(ctx, false); err != nil {
		return err
	}
	if err := w.check(ctx, s, durable); err != nil {
		return err
	}
	if err := w.insist(ctx, s, batch); err != nil {
		return err
	}
	return w.check(ctx, s, keptOnce)
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
func (w *world) torn(ctx context.Context, r *rand.Rand, s *stream) (n int, err error) {
	if w.Data == "" {
		return 0, nil
	}
	batch := s.next(3, 1)
	w.halt()
	before, err := contents(w.Data)
	if err != nil {
		return 0, err
	}
	if w.p, err = w.Open(ctx); err != nil {
		return 0, err
	}
	if err := w.p.Sink.Write(ctx, s.name, batch); err != nil {
		return 0, err
	}
	w.halt()
	after, err := contents(w.Data)
	if err != nil {
		return 0, err
	}
	path, ok := grown(before, after)
	if !ok { // not a log file, so any part of the batch may have been kept
		s.keep(batch)
		return 0, w.again(ctx, false)
	}
	was, whole := before[path], after[path]
	added := len(whole) - len(was)
	steps := r.Perm(added)
	slices.Sort(steps[:min(added, w.t.Count(60))])
	steps = append(steps[:min(added, w.t.Count(60))], added-1, added-2)
	for _, part := range steps {
		w.halt()
		if err := os.WriteFile(path, whole[:len(was)+max(0, part)], 0o600); err != nil {
			return n, err
		}
		n, w.history = n+1, []string{fmt.Sprintf("Write to %.20q: %s; kill -9 when %d of its %d bytes are in %s", s.name, numbers(batch), part, added, filepath.Base(path))}
		try := &stream{name: s.name, kept: slices.Clip(s.kept), perhaps: batch}
		if err := w.again(ctx, false); err != nil {
			return n, err
		}
		for _, then := range []func() error{
			func() error { return w.check(ctx, try, durable) },
			func() error { return w.insist(ctx, try, batch) },
			func() error { return w.check(ctx, try, keptOnce) },
			func() error { return w.write(ctx, try, try.next(1, 1)) },
			func() error { return w.again(ctx, true) },
			func() error { return w.check(ctx, try, durable) },
		} {
			if err := then(); err != nil {
				return n, err
			}
		}
	}
	s.keep(batch)
	w.halt()
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		return n, err
	}
	return n, w.again(ctx, false)
}

// failing makes the backend unavailable in every way that the subject supports, and fills the disk.
func failing(ctx context.Context, t *kit.Trial, s Subject) (failed error) {
	w, err := s.begin(ctx, t)
	if err != nil {
		return err
	}
	defer func() { w.end() }()
	one := newStream()
	if err := w.write(ctx, one, one.next(3, 1)); err != nil {
		return err
	}
	past, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	err = w.fails(past, one, one.next(2, 1), patience, true)
	if cancel(); err != nil {
		return err
	}
	if err := w.settles(ctx, one); err != nil {
		return err
	}
	full, err := w.full(ctx, one)
	if err != nil {
		return err
	}
	defer func() {
		if failed == nil {
			failed = w.again(ctx, true)
		}
		if failed == nil { // stopping may lose data that was only in memory
			failed = w.check(ctx, one, durable)
		}
	}()
	switch {
	case s.Backend != nil:
	case s.Fixed, full > 0:
		t.Cover("a deadline that has passed, and a disk that was full after %d different parts of a write", full)
		return nil
	default:
		return kit.CannotJudge("nothing was given to make writes fail with: write ${data} in the settings where the folder of the sink belongs, or give --backend HOST:PORT, or --backend none if it has neither files nor a backend")
	}
	for i := range t.Count(5) {
		w.note("the backend is unreachable")
		if err := w.duringOutage(ctx, s.Backend.Stop, one, 1+i); err != nil {
			return err
		}
		w.note("the backend does not answer")
		if err := w.duringOutage(ctx, s.Backend.Stall, one, 1+i); err != nil {
			return err
		}
	}
	cuts := 0
	if cutter, ok := s.Backend.(kit.Cutter); ok {
		before := cutter.Writes()
		if err := w.insist(ctx, one, one.next(20, 1)); err != nil {
			return err
		}
		for pieces := cutter.Writes() - before; int64(cuts) < 2*max(1, min(pieces, 20)); cuts++ {
			w.note("the connections break %s piece %d of what is sent", []string{"after", "before"}[cuts%2], cuts/2+1)
			cutter.Cut(int64(cuts/2+1), cuts%2 == 1)
			if err := w.fails(ctx, one, one.next(20, 1), timeout/3, true); err != nil {
				return err
			}
			if err := s.Backend.Start(ctx); err != nil {
				return err
			}
			if err := w.settles(ctx, one); err != nil {
				return err
			}
		}
	}
	t.Cover("a backend that is unreachable or does not answer, and %d connections that broke at another piece of a write", cuts)
	return nil
}

// settles repeats what was not acknowledged, and compares the sink with the model.
func (w *world) settles(ctx context.Context, s *stream) error {
	if again := s.perhaps; len(again) > 0 {
		if err := w.insist(ctx, s, again); err != nil {
			return err
		}
	}
	w.history = w.history[max(0, len(w.history)-4):]
	return w.check(ctx, s, keptOnce)
}

// duringOutage writes while stop has made the backend unavailable, and again when it is back.
func (w *world) duringOutage(ctx context.Context, stop func(context.Context) error, s *stream, n int) error {
	if err := stop(ctx); errors.Is(err, errors.ErrUnsupported) {
		return nil
	} else if err != nil {
		return err
	}
	err := w.fails(ctx, s, s.next(n, 1), time.Second, false)
	if started := w.Backend.Start(context.WithoutCancel(ctx)); err != nil || started != nil {
		return errors.Join(err, started)
	}
	return w.settles(ctx, s)
}

// full fills the disk after various numbers of further bytes, and returns how many writes failed.
func (w *world) full(ctx context.Context, s *stream) (n int, err error) {
	if w.Data == "" || w.p.Limit == nil {
		return 0, nil
	}
	for _, part := range []int64{0, 1, 2, 50, 150, 250, 300, 400, 600, 900, 1200} {
		files, err := contents(w.Data)
		if err != nil {
			return n, err
		}
		if len(files) == 0 {
			return 0, nil
		}
		length := 0
		for _, content := range files {
			length = max(length, len(content))
		}
		w.note("the disk is full after %d further bytes", part)
		if err := w.p.Limit(int64(length) + part); errors.Is(err, errors.ErrUnsupported) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		err = w.fails(ctx, s, s.next(3, 1), timeout/3, true)
		freed := w.p.Limit(-1)
		if err != nil || freed != nil {
			return n, errors.Join(err, freed)
		}
		if len(s.perhaps) > 0 {
			n++
			if err := w.check(ctx, s, onlyFirst); err != nil {
				return n, err
			}
		}
		if err := w.settles(ctx, s); err != nil {
			return n, err
		}
	}
	return n, nil
}
