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
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Each server of a cluster runs its own process of an app, from files in its own home. The server that
// installs an app stores its files with the records, and one that starts an app without having its
// files takes them from there. So all servers run the same files, whatever has become of their source.
//
// Python virtual environments contain their own path in many files and cannot be moved: they are
// installed again from their registry, in the recorded version.

// filesRetryPause is how long to wait before records that cannot be reached are tried again.
const filesRetryPause = time.Second

// shareFiles stores the files of a bundle that was put in place for other servers. A directory that
// would be used where it is, is used in its present state from a copy in the home.
func (m *Manager) shareFiles(ctx context.Context, found *source.Candidate) error {
	r := &found.Record
	if m.o.Cluster == nil || r.Dir == "" || isImmovable(r.Dir) {
		return nil
	}
	sum, err := m.storeFiles(ctx, *r)
	if err != nil {
		return fmt.Errorf("its files cannot be stored for the other servers: %w", err)
	}
	r.Files = sum
	if found.Label != "" {
		return nil
	}
	found.SetLabel(sum)
	r.Dir = filepath.Join(source.LayoutOf(m.o.Home, r.Workspace).BundlesDir(r.Name), found.Label)
	return m.provideFiles(ctx, *r)
}

// isImmovable reports whether a bundle's files work in their place only.
func isImmovable(dir string) bool { return exists(filepath.Join(dir, "venv", "pyvenv.cfg")) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// storeFiles stores a bundle's files for the other servers, and returns their SHA-256.
func (m *Manager) storeFiles(ctx context.Context, r core.Installation) (sum string, err error) {
	incoming := source.LayoutOf(m.o.Home, r.Workspace).IncomingDir()
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
	return sum, m.o.Cluster.PutFiles(ctx, sum, f)
}

// provideFiles makes sure that an app's files are on this server.
func (m *Manager) provideFiles(ctx context.Context, r core.Installation) error {
	if r.Dir == "" || exists(r.Dir) && isComplete(r.Dir) {
		return nil
	}
	if !m.ownsFiles(r) {
		if m.o.Cluster == nil {
			return nil // the start of the app says what is wrong
		}
		return fmt.Errorf("its directory %s is not on this server: uninstall it and install it again", r.Dir)
	}
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(r.Dir), 0o700); err != nil {
		return err
	}
	for {
		err := m.fetchFiles(limit, r)
		if core.CodeOf(err) != core.CodeUnavailable || !wait(limit, filesRetryPause) {
			return err
		}
	}
}

func (m *Manager) fetchFiles(ctx context.Context, r core.Installation) error {
	switch {
	case r.Files != "":
		return m.unpackStored(ctx, r)
	case r.Source.Kind == core.SourceName || r.Source.Kind == core.SourceNPM || r.Source.Kind == core.SourcePyPI:
		return m.installAgain(ctx, r)
	}
	return errors.New("its files are neither on this server nor with the records: uninstall it and install it again")
}

// unpackStored makes an app's directory from the files that are stored with the records.
func (m *Manager) unpackStored(ctx context.Context, r core.Installation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := errors.Join(os.RemoveAll(r.Dir), os.WriteFile(incompleteMark(r.Dir), []byte(bootID()), 0o600)); err != nil {
		return err
	}
	out, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := m.o.Records.Files(ctx, r.Files, in)
		_ = in.CloseWithError(err) // nil is the end
		read <- err
	}()
	err := gunzip(out, func(content io.Reader) error {
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
	m.log.Debug("files of an app taken from the records", "workspace", r.Workspace, "app", r.Name)
	m.syncFiles(ctx, r.Dir)
	return nil
}

// syncFiles writes unpacked files through to the disk in the background. Until that is done, the mark
// contains the boot id of the machine for which the files are complete.
func (m *Manager) syncFiles(ctx context.Context, dir string) {
	_, done, err := m.beginWork(context.WithoutCancel(ctx))
	if err != nil {
		return // the mark stays: the files are unpacked again after a restart of the machine
	}
	go func() {
		defer done()
		err := bundle.Flush(dir)
		if err == nil {
			err = os.Remove(incompleteMark(dir))
		}
		if err != nil && exists(dir) {
			m.log.Warn("files of an app could not be written through to the disk; they are unpacked again after a restart of the machine", "error", err)
		}
	}()
}

func gunzip(r io.Reader, do func(io.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	return errors.Join(do(z), z.Close())
}

// incompleteMark is a file beside the directory of a bundle. While it exists, the directory is being
// filled or is complete only until the machine restarts: the file then contains the boot id.
func incompleteMark(dir string) string { return dir + ".unready" }

// isComplete reports whether a directory that exists contains the whole bundle.
func isComplete(dir string) bool {
	mark, err := os.ReadFile(incompleteMark(dir))
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(mark) > 0 && string(mark) == bootID()
}

// bootID identifies this boot of the machine, "" where the system has no such id.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(id)
}

// installAgain installs an app from its registry again, in exactly the recorded version and bundle.
func (m *Manager) installAgain(ctx context.Context, r core.Installation) error {
	found, err := m.resolver.Resolve(ctx, source.Order{
		Workspace: r.Workspace, ServerName: r.Name, Exact: true, Source: core.Source{Kind: r.Source.Kind, Ref: r.Source.Ref}, Version: r.Version, Env: r.Env,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := found.RemoveStaged(); err != nil {
			m.log.Warn("unused directory could not be removed", "error", err)
		}
	}()
	if found.IsPlaced() || found.Label != filepath.Base(r.Dir) {
		return fmt.Errorf("the registry has another bundle as %s %s by now: uninstall it and install it again", r.Source.Ref, r.Version)
	}
	mark := incompleteMark(r.Dir)
	if err := errors.Join(os.WriteFile(mark, nil, 0o600), os.RemoveAll(r.Dir)); err != nil {
		return err
	}
	if err := found.Place(ctx, r.Dir); err != nil {
		return errors.Join(err, os.RemoveAll(r.Dir))
	}
	return os.Remove(mark)
}

// contributeAllFiles stores the files of apps that were installed before the server joined a cluster.
func (m *Manager) contributeAllFiles(ctx context.Context) {
	for _, a := range m.allApps() {
		if err := m.contributeFiles(ctx, a); err != nil && ctx.Err() == nil {
			a.log.Warn("files of an app could not be stored for the other servers; it runs on this one only", "error", err)
		}
	}
}

func (m *Manager) contributeFiles(ctx context.Context, a *app) error {
	old := a.now.Load().record
	if old.Files != "" || old.Dir == "" || !exists(old.Dir) || isImmovable(old.Dir) {
		return nil
	}
	sum, err := m.storeFiles(ctx, old)
	if err != nil {
		return err
	}
	if err := a.acquireTurn(ctx); err != nil {
		return err
	}
	defer a.releaseTurn()
	changed, err := m.o.Records.ChangeInstallation(ctx, a.key.Workspace, a.key.Name, func(in *core.Installation) error {
		if in.ID != old.ID || in.Files != "" || m.currentDir(*in) != old.Dir {
			return errors.New("it was changed meanwhile")
		}
		if in.Files = sum; !m.ownsFiles(old) {
			in.Dir = filepath.Join(source.LayoutOf(m.o.Home, in.Workspace).BundlesDir(in.Name), source.LabelOf(sum))
		}
		return nil
	})
	if err == nil {
		a.transition(sameState, func(v *view) { v.record.Files, v.record.Dir = changed.Files, m.currentDir(changed) })
	}
	return err
}
