package files

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Records reads the files that servers have stored with the records.
type Records interface {
	// Files writes the content that Cluster.PutFiles stored under sum. It returns core.CodeNotFound if there is none.
	Files(ctx context.Context, sum string, to io.Writer) error
}

// Cluster stores files for the other servers.
type Cluster interface {
	// PutFiles stores content under its SHA-256. It does not read content if that is already stored.
	PutFiles(ctx context.Context, sum string, content io.Reader) error
}

// Options configures a Store.
type Options struct {
	Home     string // the server's home directory, absolute
	Records  Records
	Cluster  Cluster // nil for a server that is not in a cluster
	Resolver *source.Resolver
	Logger   hclog.Logger
	Timeout  time.Duration // for fetching and unpacking an app's files
	// Begin registers background work, so that a shutdown waits for it. The returned context is cancelled when the
	// server shuts down; err is set if it is already shutting down.
	Begin func(ctx context.Context) (c context.Context, done func(), err error)
}

// Store manages the files of installed apps in the home. It is safe for concurrent use, but two calls for the same
// app must not overlap.
type Store struct {
	o            Options
	fingerprints chan struct{} // limits the number of concurrent calls to Fingerprint
}

// New returns a Store with the given options.
func New(o Options) *Store { return &Store{o, make(chan struct{}, runtime.GOMAXPROCS(0))} }

// retryPause is how long to wait before trying again to reach the records.
const retryPause = time.Second

// Share stores the files of a placed bundle for the other servers of the cluster. If the bundle is a directory that
// would be used in place, Share copies its current state into the home, and the app uses the copy.
func (s *Store) Share(ctx context.Context, found *source.Candidate) error {
	r := &found.Record
	if s.o.Cluster == nil || r.Dir == "" || IsImmovable(r.Dir) {
		return nil
	}
	sum, err := s.Put(ctx, *r)
	if err != nil {
		return fmt.Errorf("its files cannot be stored for the other servers: %w", err)
	}
	r.Files = sum
	if found.Label != "" {
		return nil
	}
	found.SetLabel(sum)
	r.Dir = filepath.Join(source.LayoutOf(s.o.Home, r.Workspace).BundlesDir(r.Name), found.Label)
	return s.Provide(ctx, *r)
}

// IsImmovable reports whether a bundle's files work only at their current path.
func IsImmovable(dir string) bool { return Exists(filepath.Join(dir, "venv", "pyvenv.cfg")) }

// Exists reports whether there is a file or directory at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Put stores a bundle's files for the other servers and returns the SHA-256 of the packed files.
func (s *Store) Put(ctx context.Context, r core.Installation) (sum string, err error) {
	incoming := source.LayoutOf(s.o.Home, r.Workspace).IncomingDir()
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
	return sum, s.o.Cluster.PutFiles(ctx, sum, f)
}

// Provide makes sure that an app's files are on this server. While the records are unavailable, it retries until
// Timeout has passed.
func (s *Store) Provide(ctx context.Context, r core.Installation) error {
	if r.Dir == "" || Exists(r.Dir) && isComplete(r.Dir) {
		return nil
	}
	if !s.Owns(r) {
		if s.o.Cluster == nil {
			return nil // starting the app reports what is wrong
		}
		return fmt.Errorf("its directory %s is not on this server: uninstall it and install it again", r.Dir)
	}
	limit, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(r.Dir), 0o700); err != nil {
		return err
	}
	for {
		err := s.fetch(limit, r)
		if core.CodeOf(err) != core.CodeUnavailable || !wait(limit) {
			return err
		}
	}
}

func (s *Store) fetch(ctx context.Context, r core.Installation) error {
	switch {
	case r.Files != "":
		return s.unpackStored(ctx, r)
	case r.Source.Kind == core.SourceName || r.Source.Kind == core.SourceNPM || r.Source.Kind == core.SourcePyPI:
		return s.installAgain(ctx, r)
	}
	return errors.New("its files are neither on this server nor in the database: uninstall it and install it again")
}

// installAgain installs an app from its registry again. It fails unless the registry still has exactly the recorded
// version and bundle.
func (s *Store) installAgain(ctx context.Context, r core.Installation) error {
	found, err := s.o.Resolver.Resolve(ctx, source.Order{
		Workspace: r.Workspace, ServerName: r.Name, Exact: true, Source: core.Source{Kind: r.Source.Kind, Ref: r.Source.Ref}, Version: r.Version, Env: r.Env,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := found.RemoveStaged(); err != nil {
			s.o.Logger.Warn("could not remove an unused directory", "error", err)
		}
	}()
	if found.IsPlaced() || found.Label != filepath.Base(r.Dir) {
		return fmt.Errorf("the registry now has a different bundle for %s %s: uninstall it and install it again", r.Source.Ref, r.Version)
	}
	mark := incompleteMark(r.Dir)
	if err := errors.Join(os.WriteFile(mark, nil, 0o600), cleanup.RemoveAll(r.Dir)); err != nil {
		return err
	}
	if err := found.Place(ctx, r.Dir); err != nil {
		return errors.Join(err, cleanup.RemoveAll(r.Dir))
	}
	return os.Remove(mark)
}

// wait waits for retryPause. It returns false if ctx ends first.
func wait(ctx context.Context) bool {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
