package audittest_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
)

// disk is the backend that the processes of a sink share. It is a kit.Backend.
type disk struct {
	mu   sync.Mutex
	kept map[string][]audit.Record
	away bool
	busy chan struct{} // closed when it answers again; nil unless it is stalled
}

func (d *disk) Stop(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = true
	return nil
}
func (d *disk) Stall(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = make(chan struct{})
	return nil
}

func (d *disk) Start(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away = false; d.busy != nil {
		close(d.busy)
		d.busy = nil
	}
	return nil
}

// reach fails while the disk cannot be used.
func (d *disk) reach(ctx context.Context) error {
	d.mu.Lock()
	away, busy := d.away, d.busy
	d.mu.Unlock()
	if away {
		return fmt.Errorf("%w: the disk is away", plugins.ErrUnavailable)
	}
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return plugins.Unavailable(ctx.Err())
		}
	}
	return ctx.Err()
}

// add keeps those records that follow the last one of the stream.
func (d *disk) add(stream string, records []audit.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range records {
		if kept := d.kept[stream]; len(kept) == 0 || kept[len(kept)-1].Sequence < r.Sequence {
			d.kept[stream] = append(d.kept[stream], r)
		}
	}
}

// force keeps records as they are.
func (d *disk) force(stream string, records []audit.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[stream] = append(d.kept[stream], records...)
}

func (d *disk) of(stream string) []audit.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.kept[stream])
}

// mentioning returns the records of a stream, and those of others that have its name in a field.
func (d *disk) mentioning(name string) (found []audit.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for stream, kept := range d.kept {
		for _, r := range kept {
			if stream == name || r.Target == name {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b audit.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return found
}

// process is an honest sink on a disk.
type process struct {
	disk *disk
	dead chan struct{} // closed when the process was killed
}

func (p *process) Write(ctx context.Context, stream string, records []audit.Record) error {
	if err := p.begin(ctx, stream, records); err != nil {
		return err
	}
	p.disk.add(stream, records)
	return nil
}

// begin is what an honest sink does before it keeps anything.
func (p *process) begin(ctx context.Context, stream string, records []audit.Record) error {
	if err := audit.CheckWrite(stream, records); err != nil {
		return err
	}
	return p.disk.reach(ctx)
}

func (p *process) Read(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
	return page(p.disk.of(stream), after, limit), p.disk.reach(ctx)
}

// page returns the records after a sequence, at most limit. It does not sort.
func page(kept []audit.Record, after uint64, limit int) []audit.Record {
	from := slices.IndexFunc(kept, func(r audit.Record) bool { return r.Sequence > after })
	if from < 0 {
		return nil
	}
	return kept[from:min(len(kept), from+limit)]
}

// subject is a sink that open makes of an honest process.
func subject(open func(*process) audit.Sink) audittest.Subject {
	d := &disk{kept: map[string][]audit.Record{}}
	return audittest.Subject{
		Sink:    open(&process{disk: d, dead: make(chan struct{})}),
		Backend: d,
		Open: func(context.Context) (*audittest.Process, error) {
			p := &process{disk: d, dead: make(chan struct{})}
			sink, kill := open(p), sync.OnceFunc(func() { close(p.dead) })
			return &audittest.Process{Sink: sink, Kill: kill, Close: func() {
				if closer, ok := sink.(io.Closer); ok {
					_ = closer.Close()
				}
				kill()
			}}, nil
		},
	}
}
