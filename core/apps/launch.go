package apps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
)

// launcher starts what a record describes and initializes it. Its errors are safe to show.
type launcher func(ctx context.Context, record core.Installation, log hclog.Logger) (instance, error)

// launch starts the app and reads its tools, within Options.StartTimeout. What was started does
// not outlive an error.
func (a *app) launch(ctx context.Context) (instance, []core.Tool, error) {
	limit, cancel := context.WithTimeout(ctx, a.yard.o.StartTimeout)
	defer cancel()
	conn, err := a.yard.launch(limit, a.now.Load().record, a.log)
	if err != nil {
		return nil, nil, err
	}
	tools, err := listTools(limit, conn, a.key.name, a.log)
	if err == nil {
		return conn, tools, nil
	}
	reason := fmt.Sprintf("tools/list failed: %v", err)
	switch {
	case closed(conn.Done()):
		reason = conn.Reason()
	case limit.Err() != nil && ctx.Err() == nil:
		reason = fmt.Sprintf("tools/list was not answered within %v of the start", a.yard.o.StartTimeout)
	}
	if ended := conn.End(0); ended != nil {
		a.log.Error("An app that failed to start could not be ended.", "error", ended)
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return nil, nil, errors.New(newRedactor(a.now.Load().record).text(reason))
}

func (y *Yard) launchApp(ctx context.Context, record core.Installation, log hclog.Logger) (instance, error) {
	if record.Remote != nil {
		return y.connect(ctx, record, log)
	}
	return y.spawn(ctx, record, log)
}

// spawn starts a process and initializes it.
func (y *Yard) spawn(ctx context.Context, record core.Installation, log hclog.Logger) (instance, error) {
	what, err := y.plan(record)
	if err != nil {
		return nil, err
	}
	out, err := openLog(placesOf(y.o.Home, record.Workspace).log(record.Name))
	if err != nil {
		return nil, fmt.Errorf("its log cannot be opened: %w", err)
	}
	redact := newRedactor(record)
	l := &local{changed: make(chan struct{}, 1), stderr: newStderr(out, redact)}
	l.process, err = process.Start(process.Command{Path: what.Path, Args: what.Args, Dir: what.Dir, Env: what.Env, Stderr: l.stderr})
	if err != nil {
		return nil, errors.Join(errors.New(redact.text(err.Error())), l.stderr.Close())
	}
	l.Link, err = link.Open(ctx, link.Stdio(l.process.Stdin(), l.process.Stdout(), link.FrameOptions{}), y.linkOptions(record, log, l.changed))
	if err != nil {
		return nil, y.unborn(ctx, l, redact, err)
	}
	go l.watch()
	return l, nil
}

// plan works out the process of a bundle, and makes the directories that it may use.
func (y *Yard) plan(record core.Installation) (bundle.Launch, error) {
	m, err := bundle.ParseManifest(record.Manifest)
	if err != nil {
		return bundle.Launch{}, err
	}
	data := placesOf(y.o.Home, record.Workspace).data(record.Name)
	if err := os.MkdirAll(filepath.Join(data, "tmp"), 0o700); err != nil {
		return bundle.Launch{}, fmt.Errorf("its data directory cannot be made: %w", err)
	}
	return m.Launch(bundle.LaunchInput{
		Dir: record.Dir, Home: y.o.HostEnv["HOME"], Data: data,
		Base: baseEnvironment(y.o.HostEnv, data), Values: record.Env,
		Lookup: bundle.Lookup(y.o.HostEnv["PATH"]),
	})
}

// unborn ends a process that did not answer initialize, and says why it did not.
func (y *Yard) unborn(ctx context.Context, l *local, redact redactor, err error) error {
	reason := y.handshake(ctx, err)
	if ctx.Err() == nil {
		select {
		case <-l.process.Done():
			reason = "before it answered initialize, " + exit(l.process)
		case <-time.After(exitPatience):
		}
	}
	ended := l.process.Stop(context.WithoutCancel(ctx), 0)
	reason = lastWords(reason, l.stderr)
	_ = l.stderr.Close()
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.Join(ctx.Err(), ended)
	}
	return errors.Join(errors.New(redact.text(reason)), ended)
}

// handshake says how initialize failed.
func (y *Yard) handshake(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("initialize timed out after %v", y.o.StartTimeout)
	}
	return fmt.Sprintf("initialize failed: %v", err)
}

// connect opens a connection to a remote app.
func (y *Yard) connect(ctx context.Context, record core.Installation, log hclog.Logger) (instance, error) {
	r := &remote{changed: make(chan struct{}, 1), redact: newRedactor(record)}
	o := y.o.Remote
	o.AllowPrivate = o.AllowPrivate || record.Remote.AllowPrivate
	o.Name, o.Logger = record.Name, log
	transport, err := link.Remote(*record.Remote, o)
	if err != nil {
		return nil, errors.New(r.redact.text(err.Error()))
	}
	r.Link, err = link.Open(ctx, transport, y.linkOptions(record, log, r.changed))
	switch {
	case err == nil:
		return r, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	return nil, errors.New(r.redact.text(y.handshake(ctx, err)))
}

func (y *Yard) linkOptions(record core.Installation, log hclog.Logger, changed chan<- struct{}) link.Options {
	return link.Options{
		Name: record.Name, Version: y.o.Version, Logger: log, MaxCalls: y.o.MaxCalls + 64, // the yard's own bound is met first
		OnListChanged: func(kind string) {
			if kind != "tools" {
				return
			}
			select {
			case changed <- struct{}{}:
			default: // one that is not read yet stands for this one too
			}
		},
	}
}
