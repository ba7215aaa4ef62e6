package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/bench/load"
)

// Options configure a run.
type Options struct {
	Service string    // the server's executable
	Against string    // another build of the server to compare with; "" if there is none
	Self    string    // this executable, which also runs every rival and bundle
	Quick   bool      // fewer and shorter rounds, to check that everything works; not for published figures
	Only    []string  // names of the parts to measure; empty means all
	Dir     string    // the directory for homes
	Log     io.Writer // receives a line for each measurement
}

// bench is one run.
type bench struct {
	o       Options
	dir     string
	log     hclog.Logger
	rounds  int
	span    time.Duration // duration of one sample
	started []*process
	rows    []Row

	leftovers []string // directories next to dir
}

// contestant is one server under load.
type contestant struct {
	name   string
	target load.Target
	*process
	other *contestant // the same service with the executable to compare with, or nil
}

// part is a group of rows that can be measured separately.
type part struct {
	name    string
	measure func(context.Context) error
}

func (b *bench) parts() []part {
	return []part{
		{"calls", b.speed}, {"latency", b.latency}, {"tokens", b.tokens}, {"adapters", b.adapters}, {"traces", b.traces}, {"lists", b.lists}, {"search", b.search}, {"crowd", b.crowd},
		{"accounts", b.accounts}, {"memory", b.memory}, {"starts", b.starts}, {"apps", b.apps}, {"sleep", b.sleep}, {"chat", b.chat},
		{"conversations", b.conversations}, {"writes", b.writes},
	}
}

// Parts returns the names of the parts that can be measured separately.
func Parts() []string {
	var names []string
	for _, p := range (&bench{}).parts() {
		names = append(names, p.name)
	}
	return names
}

// Run measures everything and returns the rows. All processes that it started have exited when it returns.
func Run(ctx context.Context, o Options) ([]Row, error) {
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return nil, fmt.Errorf("the table has no part %q; its parts are %s", name, strings.Join(Parts(), ", "))
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "ropewalk-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, dir: dir, log: hclog.NewNullLogger(), rounds: 9, span: time.Second}
	if o.Quick {
		b.rounds, b.span = 3, 300*time.Millisecond
	}
	for _, p := range b.parts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		err := p.measure(ctx)
		b.stopAll()
		if err != nil {
			return b.rows, errors.Join(err, b.tidy())
		}
	}
	return b.rows, b.tidy()
}

func (b *bench) tidy() (err error) {
	for _, dir := range append(b.leftovers, b.dir) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// stopAll stops what a part started, in reverse order.
func (b *bench) stopAll() {
	for _, p := range slices.Backward(b.started) {
		p.stop()
	}
	b.started = nil
}

// rival starts this executable as one of the rivals.
func (b *bench) rival(ctx context.Context, name string, args ...string) (contestant, error) {
	p, err := start(ctx, rivalURL, b.o.Self, args...)
	if err != nil {
		return contestant{}, err
	}
	b.started = append(b.started, p)
	return contestant{name: name, target: load.Target{URL: p.url, Tool: "echo"}.Padded(smallPayload), process: p}, nil
}

func rivalURL(line string) string {
	if len(line) > 7 && line[:7] == "http://" {
		return line
	}
	return ""
}

// service starts an instance of the service and waits until its app can be called. If there is an executable to
// compare with, it also starts an instance of that.
func (b *bench) service(ctx context.Context, s service, token string) (contestant, error) {
	c, err := b.instance(ctx, b.o.Service, s, token)
	if err != nil || b.o.Against == "" || s.ownSchema() {
		return c, err
	}
	s.name += otherBuild
	other, err := b.instance(ctx, b.o.Against, s, token)
	c.other = &other
	return c, err
}

// instance starts one executable of the service and waits until its app can be called.
func (b *bench) instance(ctx context.Context, executable string, s service, token string) (contestant, error) {
	p, err := b.startService(ctx, executable, s)
	if err != nil {
		return contestant{}, err
	}
	c := contestant{name: "ropewalk " + s.name, target: serviceTarget(p.url, token), process: p}
	return c, b.ready(ctx, c)
}

func serviceTarget(url, token string) load.Target {
	t := load.Target{URL: url, Tool: "bench__echo", Header: map[string]string{"X-Workspace-Id": workspace}}
	if token != "" {
		t.Header["Authorization"] = "Bearer " + token
	}
	return t.Padded(smallPayload)
}

// ready waits for the first successful call.
func (b *bench) ready(ctx context.Context, c contestant) error {
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		r, err := load.Run(limit, c.target, load.Plan{Kind: load.Calls, Concurrency: 1, Total: 1})
		if err == nil && r.Failed == 0 && r.Requests == 1 {
			return nil
		}
		select {
		case <-limit.Done():
			return errors.Join(fmt.Errorf("no call to %s succeeded: %s", c.name, r.Error), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
