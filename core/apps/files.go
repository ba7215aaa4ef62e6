package apps

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Each server of a deployment runs its own process of an app, from files in its own home. Who
// installs an app keeps its files with the records; who starts one whose files are not here takes
// them from there. So what runs is the same everywhere, whatever has become of where it came from.
//
// Virtual environments of Python name their own place in many files and cannot be moved: they are
// installed again from their registry, in the version that is recorded.

// keepPatience is how long is waited before records that cannot be asked are asked again.
const keepPatience = time.Second

// share keeps the files of a bundle that was just put in its place for other servers. A directory
// that would be used where it is is used as it is now, from a copy in the home.
func (y *Manager) share(ctx context.Context, found *arrival) error {
	r := &found.record
	if y.o.Cluster == nil || r.Dir == "" || fixed(r.Dir) {
		return nil
	}
	sum, err := y.keep(ctx, *r)
	if err != nil {
		return fmt.Errorf("its files cannot be given to the other servers: %w", err)
	}
	r.Files = sum
	if found.label != "" {
		return nil
	}
	found.label = sum[:labelLength]
	r.Dir = filepath.Join(placesOf(y.o.Home, r.Workspace).bundles(r.Name), found.label)
	return y.provide(ctx, *r)
}

// fixed reports whether a bundle's files work in their place only.
func fixed(dir string) bool { return exists(filepath.Join(dir, "venv", "pyvenv.cfg")) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// keep hands a bundle's files to the other servers, and returns under which name.
func (y *Manager) keep(ctx context.Context, r core.Installation) (sum string, err error) {
	incoming := placesOf(y.o.Home, r.Workspace).incoming()
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(incoming, "files-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	if sum, err = bundle.Pack(ctx, r.Dir, z, bundle.Limits{}); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return sum, y.o.Cluster.PutFiles(ctx, sum, f)
}

// provide sees to it that an app's files are here.
func (y *Manager) provide(ctx context.Context, r core.Installation) error {
	if r.Dir == "" || exists(r.Dir) && ready(r.Dir) {
		return nil
	}
	if !y.owns(r) {
		if y.o.Cluster == nil {
			return nil // the launch says what is wrong
		}
		return fmt.Errorf("its directory %s is not on this server: uninstall it and install it again", r.Dir)
	}
	limit, cancel := context.WithTimeout(ctx, y.o.InstallTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(r.Dir), 0o700); err != nil {
		return err
	}
	for {
		err := y.bring(limit, r)
		if core.CodeOf(err) != core.CodeUnavailable || !wait(limit, keepPatience) {
			return err
		}
	}
}

func (y *Manager) bring(ctx context.Context, r core.Installation) error {
	switch {
	case r.Files != "":
		return y.unpackKept(ctx, r)
	case r.Source.Kind == core.SourceName:
		return y.fetchAgain(ctx, r)
	}
	return errors.New("its files are not on this server, and not with the records: uninstall it and install it again")
}

// unpackKept makes an app's directory of the files that are kept with the records.
func (y *Manager) unpackKept(ctx context.Context, r core.Installation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := errors.Join(os.RemoveAll(r.Dir), os.WriteFile(unready(r.Dir), []byte(bootID()), 0o600)); err != nil {
		return err
	}
	out, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := y.o.Records.Files(ctx, r.Files, in)
		_ = in.CloseWithError(err) // nil is the end
		read <- err
	}()
	err := unzipped(out, func(content io.Reader) error {
		return bundle.UnpackPacked(ctx, content, r.Files, r.Dir, bundle.Limits{})
	})
	_ = out.CloseWithError(err)
	cancel()
	if failed := <-read; failed != nil && err != nil && !errors.Is(failed, context.Canceled) {
		err = failed // the cause
	}
	if err != nil {
		return fmt.Errorf("its files cannot be taken from the records: %w", err)
	}
	y.log.Debug("The files of an app were taken from the records", "workspace", r.Workspace, "app", r.Name)
	y.flush(ctx, r.Dir)
	return nil
}

// flush writes what was unpacked through to the disk, behind the app's back: until that is done, the
// mark says since which start of the machine the files are whole.
func (y *Manager) flush(ctx context.Context, dir string) {
	_, leave, err := y.enter(context.WithoutCancel(ctx))
	if err != nil {
		return // the mark stays: that costs another unpacking after a restart of the machine
	}
	go func() {
		defer leave()
		err := bundle.Flush(dir)
		if err == nil {
			err = os.Remove(unready(dir))
		}
		if err != nil && exists(dir) {
			y.log.Warn("An app's files could not be written through to the disk; they are unpacked again after a restart of the machine", "error", err)
		}
	}()
}

func unzipped(r io.Reader, do func(io.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	return errors.Join(do(z), z.Close())
}

// unready marks, beside the directory of a bundle, that it is being filled in its place, or that it is
// whole as long as the machine runs: the mark holds the id of the machine's start then.
func unready(dir string) string { return dir + ".unready" }

// ready reports whether a directory that is there holds the whole bundle.
func ready(dir string) bool {
	mark, err := os.ReadFile(unready(dir))
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(mark) > 0 && string(mark) == bootID()
}

// bootID tells this start of the machine from every other; "" where the system has no such id.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(id)
}

// fetchAgain installs an app from its registry again: the version and the bundle that are recorded,
// or nothing.
func (y *Manager) fetchAgain(ctx context.Context, r core.Installation) error {
	found, err := y.resolve(ctx, order{
		workspace: r.Workspace, serverName: r.Name, exact: true, source: core.Source{Kind: r.Source.Kind, Ref: r.Source.Ref}, version: r.Version, env: r.Env,
	})
	if err != nil {
		return err
	}
	defer func() {
		if found.staged != "" {
			y.clear(found.staged)
		}
	}()
	if found.place == nil || found.label != filepath.Base(r.Dir) {
		return fmt.Errorf("the registry gives something else as %s %s by now: uninstall it and install it again", r.Source.Ref, r.Version)
	}
	mark := unready(r.Dir)
	if err := errors.Join(os.WriteFile(mark, nil, 0o600), os.RemoveAll(r.Dir)); err != nil {
		return err
	}
	if err := found.place(ctx, found, r.Dir); err != nil {
		return errors.Join(err, os.RemoveAll(r.Dir))
	}
	return os.Remove(mark)
}

// contribute keeps the files of an app for other servers that was installed when there were none.
func (y *Manager) contribute(ctx context.Context, a *app) error {
	old := a.now.Load().record
	if old.Files != "" || old.Dir == "" || !exists(old.Dir) || fixed(old.Dir) {
		return nil
	}
	sum, err := y.keep(ctx, old)
	if err != nil {
		return err
	}
	if err := a.take(ctx); err != nil {
		return err
	}
	defer a.give()
	changed, err := y.o.Records.ChangeInstallation(ctx, a.key.workspace, a.key.name, func(in *core.Installation) error {
		if in.ID != old.ID || in.Files != "" || y.rebased(*in) != old.Dir {
			return errors.New("it was changed meanwhile")
		}
		if in.Files = sum; !y.owns(old) {
			in.Dir = filepath.Join(placesOf(y.o.Home, in.Workspace).bundles(in.Name), sum[:labelLength])
		}
		return nil
	})
	if err == nil {
		a.become(same, func(v *view) { v.record.Files, v.record.Dir = changed.Files, y.rebased(changed) })
	}
	return err
}
