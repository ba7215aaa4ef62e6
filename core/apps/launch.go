package apps

import (
	"context"
	"encoding/json"
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
	"github.com/ropewalk/ropewalk/core/rpc"
)

// birth is how one instance of an app is started.
type birth struct {
	record    core.Installation
	log       hclog.Logger
	stateless bool // ask for link.StatelessVersion first, instead of the handshake
	news      *news

	capabilities json.RawMessage        // what the app is told that its clients can do; nil for nothing
	asked        link.RequestHandler    // answers what the app asks
	said         func(rpc.Notification) // hears what the app says by itself; nil
	changed      func(core.Kind)        // hears which lists change, and not news; nil
}

// launcher starts what a record describes and initializes it. Its errors are safe to show, and wrap
// link.ErrRefused when the app refused the handshake.
type launcher func(ctx context.Context, b birth) (instance, error)

// shared is the instance of the app that all callers have in common.
func (a *app) shared() birth {
	return birth{
		record: a.now.Load().record, log: a.log, news: newNews(),
		capabilities: json.RawMessage(everything), asked: a.askedInCommon, said: a.said,
	}
}

// open starts the shared instance. A bundle that refuses the handshake may speak the revision that
// has none; that is remembered.
func (a *app) open(ctx context.Context) (instance, error) {
	b := a.shared()
	b.stateless = a.manager.memory.of(b.record).stateless
	conn, err := a.manager.launch(ctx, b)
	if err == nil || b.stateless || !errors.Is(err, link.ErrRefused) {
		return conn, err
	}
	b.stateless = true
	other, failed := a.manager.launch(ctx, b)
	if failed != nil {
		return nil, err // the older revision's word is the one to show
	}
	a.learn(func(t *traits) { t.stateless = true })
	return other, nil
}

// launch starts the app and reads its lists, within Options.StartTimeout once its files are here.
// What was started does not outlive an error.
func (a *app) launch(ctx context.Context) (instance, core.Offer, error) {
	if err := a.manager.provide(ctx, a.now.Load().record); err != nil {
		return nil, core.Offer{}, err
	}
	limit, cancel := context.WithTimeout(ctx, a.manager.o.StartTimeout)
	defer cancel()
	conn, err := a.open(limit)
	if err != nil {
		return nil, core.Offer{}, err
	}
	offer, err := a.readOffer(limit, conn)
	if err == nil {
		return conn, offer, nil
	}
	reason := fmt.Sprintf("tools/list failed: %v", err)
	switch {
	case closed(conn.Done()):
		reason = conn.Reason()
	case limit.Err() != nil && ctx.Err() == nil:
		reason = fmt.Sprintf("tools/list was not answered within %v of the start", a.manager.o.StartTimeout)
	}
	if ended := conn.End(0); ended != nil {
		a.log.Error("An app that failed to start could not be ended", "error", ended)
	}
	if ctx.Err() != nil {
		return nil, core.Offer{}, ctx.Err()
	}
	return nil, core.Offer{}, errors.New(newRedactor(a.now.Load().record).text(reason))
}

func (y *Manager) launchApp(ctx context.Context, b birth) (instance, error) {
	if b.record.Remote != nil {
		return y.connect(ctx, b)
	}
	return y.spawn(ctx, b)
}

// spawn starts a process and initializes it.
func (y *Manager) spawn(ctx context.Context, b birth) (instance, error) {
	record := b.record
	what, err := y.plan(record)
	if err != nil {
		return nil, err
	}
	out, err := openLog(placesOf(y.o.Home, record.Workspace).log(record.Name))
	if err != nil {
		return nil, fmt.Errorf("its log cannot be opened: %w", err)
	}
	redact := newRedactor(record)
	l := &local{news: b.news, stderr: newStderr(out, redact)}
	l.process, err = process.Start(process.Command{Path: what.Path, Args: what.Args, Dir: what.Dir, Env: what.Env, Stderr: l.stderr})
	if err != nil {
		return nil, errors.Join(errors.New(redact.text(err.Error())), l.stderr.Close())
	}
	l.Link, err = link.Open(ctx, link.Stdio(l.process.Stdin(), l.process.Stdout(), link.FrameOptions{}), y.linkOptions(b))
	if err != nil {
		return nil, y.unborn(ctx, l, redact, err)
	}
	go l.watch()
	return l, nil
}

// plan works out the process of a bundle, and makes the directories that it may use.
func (y *Manager) plan(record core.Installation) (bundle.Launch, error) {
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

// unborn ends a process that did not come through initialize, and says why: in its own words when it
// answered, since that it ended then was our doing.
func (y *Manager) unborn(ctx context.Context, l *local, redact redactor, err error) error {
	reason := y.handshake(ctx, err)
	if answered := errors.Is(err, link.ErrRefused) || errors.Is(err, link.ErrUnfit); !answered && ctx.Err() == nil {
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
	return errors.Join(refusal(err, redact.text(reason)), ended)
}

// handshake says how initialize failed.
func (y *Manager) handshake(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("initialize timed out after %v", y.o.StartTimeout)
	}
	return fmt.Sprintf("initialize failed: %v", err)
}

// connect opens a connection to a remote app.
func (y *Manager) connect(ctx context.Context, b birth) (instance, error) {
	record := b.record
	r := &remote{news: b.news, redact: newRedactor(record)}
	o := y.o.Remote
	o.AllowPrivate = o.AllowPrivate || record.Remote.AllowPrivate
	o.Name, o.Logger = record.Name, b.log
	transport, err := link.Remote(*record.Remote, o)
	if err != nil {
		return nil, errors.New(r.redact.text(err.Error()))
	}
	r.Link, err = link.Open(ctx, transport, y.linkOptions(b))
	switch {
	case err == nil:
		return r, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	return nil, refusal(err, r.redact.text(y.handshake(ctx, err)))
}

// refusal is a text that is safe to show, and link.ErrRefused when that is what err is.
func refusal(err error, text string) error {
	if errors.Is(err, link.ErrRefused) {
		return refused{text}
	}
	return errors.New(text)
}

// refused is link.ErrRefused in other words.
type refused struct{ text string }

func (r refused) Error() string { return r.text }
func (r refused) Unwrap() error { return link.ErrRefused }

func (y *Manager) linkOptions(b birth) link.Options {
	changed := b.changed
	if changed == nil {
		changed = b.news.tell
	}
	return link.Options{
		Name: b.record.Name, Version: y.o.Version, Logger: b.log, MaxCalls: y.o.MaxCalls + 64, // the manager's own bound is met first
		Stateless: b.stateless, Capabilities: b.capabilities, OnNotification: b.said,
		OnListChanged: func(kind string) { changed(core.Kind(kind)) },
		Requests:      map[string]link.RequestHandler{methodElicit: b.asked, methodSample: b.asked, methodRoots: b.asked},
	}
}
