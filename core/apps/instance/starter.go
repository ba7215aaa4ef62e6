package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Starter starts instances.
type Starter struct {
	HostEnv     map[string]string // the host's environment; apps get an allow-list of it
	Remote      remote.Options    // how remote apps are reached, and which addresses are allowed
	Version     string            // the server's version, reported to apps
	MaxCalls    int               // maximum number of calls in flight per connection
	MaxAnswer   int               // maximum size in bytes of a message from an app; 0 means 16 MiB
	Confinement Confinement

	Measure func(app, method string, took time.Duration, err error) // called at the end of each request to an app; may be nil

	programs searchPathPrograms
}

// Start starts the app in spec.Record and completes the MCP handshake. Its errors are safe to show to users. A failed
// handshake returns a *Failure, which wraps link.ErrRefused if the app refused it.
func (s *Starter) Start(ctx context.Context, spec Spec) (Instance, error) {
	if spec.Record.Remote != nil {
		return s.connect(ctx, spec)
	}
	return s.startProcess(ctx, spec)
}

func (s *Starter) startProcess(ctx context.Context, spec Spec) (Instance, error) {
	launch, err := s.plan(spec)
	if err != nil {
		return nil, err
	}
	profile, err := s.profile(spec, launch)
	if err != nil {
		return nil, err
	}
	log, err := logs.OpenFile(spec.LogPath)
	if err != nil {
		return nil, fmt.Errorf("its log cannot be opened: %w", err)
	}
	redactor := logs.NewRedactor(spec.Record)
	if showsSecrets(profile, launch.Args, redactor) {
		spec.Logger.Warn("a secret setting is on the app's command line, where other apps can read it: use the sandbox level namespaces, or a manifest that passes it in env")
	}
	p := &Process{ListChanges: NewListChanges(), output: logs.NewOutput(log, redactor), ownUser: profile != nil && profile.UID != 0}
	p.process, err = process.Start(process.Command{
		Path: launch.Path, Args: launch.Args, Dir: cmp.Or(launch.Dir, spec.DataDir), Env: launch.Env, Stderr: p.output, Sandbox: profile,
		Denied: spec.denied(profile),
		Cgroup: process.Cgroup{Tree: s.Confinement.Cgroups, Name: spec.Record.Name, Limits: spec.Sandbox.Limits},
	})
	if err != nil {
		start, ok := errors.AsType[*process.StartError](err)
		if err = errors.New(redactor.Text(err.Error())); ok && start.Busy {
			err = &Failure{Reason: err.Error(), Busy: true}
		}
		return nil, errors.Join(err, p.output.Close())
	}
	o := s.linkOptions(spec, p.ListChanges)
	o.Report = p.Report
	p.Link, err = link.Open(ctx, stdio.New(p.process.Stdin(), p.process.Stdout(), stdio.Options{MaxLine: s.MaxAnswer}), o)
	if err != nil {
		return nil, s.abandon(ctx, spec, p, redactor, err)
	}
	go p.watch()
	return p, nil
}

// showsSecrets reports whether a process has secrets in its arguments, where other processes can read them.
func showsSecrets(p *sandbox.Profile, args []string, redactor logs.Redactor) bool {
	return (p == nil || p.Level < sandbox.LevelNamespaces) && slices.ContainsFunc(args, func(arg string) bool { return redactor.Text(arg) != arg })
}

// plan returns how to start the process of a bundle. It also creates the app's data directory.
func (s *Starter) plan(spec Spec) (bundle.Launch, error) {
	m, err := bundle.ParseManifest(spec.Record.Manifest)
	if err != nil {
		return bundle.Launch{}, err
	}
	if err := makeData(spec.DataDir); err != nil {
		return bundle.Launch{}, fmt.Errorf("its data directory cannot be created: %w", err)
	}
	return m.Launch(bundle.LaunchInput{
		Dir: spec.Record.Dir, Home: s.HostEnv["HOME"], Data: spec.DataDir,
		Base: withPackagePath(s.environment(spec), spec.Record.Dir), Values: spec.Record.Env,
		Lookup: bundle.Lookup(s.HostEnv["PATH"]),
	})
}

// temporaryDir is the directory for temporary files in an app's data directory.
const temporaryDir = "tmp"

// makeData creates an app's data directory and the directory for temporary files in it. It repairs changes that the app
// has made: an app must not be able to prevent its own start, and tmp must not be a symbolic link.
func makeData(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := permit(dir, 0o700); err != nil {
		return err
	}
	tmp := filepath.Join(dir, temporaryDir)
	if info, err := os.Lstat(tmp); err == nil && !info.IsDir() {
		if err := os.Remove(tmp); err != nil {
			return err
		}
	}
	if err := os.Mkdir(tmp, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// permit adds permissions to a directory.
func permit(dir string, mode fs.FileMode) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&mode == mode {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()|mode)
}

// abandon stops a process that did not complete the handshake, and returns the reason. If the app responded to the
// handshake, its response is the reason, even if the process exited afterwards.
func (s *Starter) abandon(ctx context.Context, spec Spec, p *Process, redactor logs.Redactor, err error) error {
	reason := handshakeFailure(ctx, spec, err)
	if responded := errors.Is(err, link.ErrRefused) || errors.Is(err, link.ErrBadHandshake); !responded && ctx.Err() == nil {
		select {
		case <-p.process.Done():
			reason = "before it answered initialize, " + exitStatus(p.process)
		case <-time.After(exitWait):
		}
	}
	stopErr := p.process.Stop(context.WithoutCancel(ctx), 0)
	failure := NewFailure(redactor.Text(reason), p.output)
	_ = p.output.Close()
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.Join(ctx.Err(), stopErr)
	}
	failure.cause = refusal(err)
	if stopErr != nil {
		failure.Reason += "; " + stopErr.Error()
	}
	return failure
}

func handshakeFailure(ctx context.Context, spec Spec, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "initialize timed out after " + spec.StartedTooLong()
	}
	if failed, ok := errors.AsType[*remote.Error](err); ok {
		return failed.Error() // already a complete sentence
	}
	return fmt.Sprintf("initialize failed: %v", err)
}

func (s *Starter) connect(ctx context.Context, spec Spec) (Instance, error) {
	if spec.Record.Remote.Auth.UsesAccounts() && spec.Authorizer == nil && !spec.Anonymous {
		return newPublished(spec), nil
	}
	r := &Remote{ListChanges: NewListChanges(), redactor: logs.NewRedactor(spec.Record)}
	o := s.Remote
	o.AllowPrivate = o.AllowPrivate || spec.Record.Remote.AllowPrivate
	o.Name, o.Logger, o.MaxAnswer, o.Authorizer = spec.Record.Name, spec.Logger, s.MaxAnswer, spec.Authorizer
	transport, err := remote.New(*spec.Record.Remote, o)
	if err != nil {
		return nil, errors.New(r.redactor.Text(err.Error()))
	}
	r.Link, err = link.Open(ctx, transport, s.linkOptions(spec, r.ListChanges))
	switch {
	case err == nil:
		return r, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	failure := &Failure{Reason: r.redactor.Text(handshakeFailure(ctx, spec, err)), cause: refusal(err)}
	if accountErr, ok := errors.AsType[*core.Error](err); ok { // an error of the account
		failure.cause = accountErr
	}
	if httpErr, ok := errors.AsType[*remote.Error](err); ok {
		failure.Status, failure.Challenge = httpErr.Status, httpErr.Challenge
	}
	return nil, failure
}

func (s *Starter) linkOptions(spec Spec, changes *ListChanges) link.Options {
	var measure func(method string, took time.Duration, err error)
	if s.Measure != nil {
		measure = func(method string, took time.Duration, err error) { s.Measure(spec.Record.Name, method, took, err) }
	}
	return link.Options{
		Measure: measure,
		Name:    spec.Record.Name, Version: s.Version, Logger: spec.Logger, MaxCalls: s.MaxCalls,
		Stateless: spec.Stateless, Capabilities: spec.ClientCapabilities, OnNotification: spec.OnNotification,
		OnListChanged: func(kind string) { changes.AddListChange(core.Kind(kind)) },
		Requests:      map[string]link.RequestHandler{MethodElicit: spec.OnRequest, MethodSample: spec.OnRequest, MethodRoots: spec.OnRequest},
	}
}

// refusal returns link.ErrRefused if the app refused the handshake, and nil otherwise.
func refusal(err error) error {
	if errors.Is(err, link.ErrRefused) {
		return link.ErrRefused
	}
	return nil
}
