package files

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// unpackStored creates an app's directory from the files that are stored with the records.
func (s *Store) unpackStored(ctx context.Context, r core.Installation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := errors.Join(cleanup.RemoveAll(r.Dir), os.WriteFile(incompleteMark(r.Dir), []byte(bootID()), 0o600)); err != nil {
		return err
	}
	out, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := s.o.Records.Files(ctx, r.Files, in)
		_ = in.CloseWithError(err) // nil means end of file
		read <- err
	}()
	err := gunzip(out, func(content io.Reader) error {
		return bundle.UnpackPacked(ctx, content, r.Files, r.Dir, bundle.Limits{})
	})
	_ = out.CloseWithError(err)
	cancel()
	if failed := <-read; failed != nil && err != nil && !errors.Is(failed, context.Canceled) {
		err = failed // err is only a consequence of this
	}
	if err != nil {
		return fmt.Errorf("its files cannot be read from the database: %w", err)
	}
	s.o.Logger.Debug("files of an app read from the database", "workspace", r.Workspace, "app", r.Name)
	s.syncToDisk(ctx, r.Dir)
	return nil
}

// syncToDisk flushes unpacked files to disk in the background. Until that is done, the mark contains the ID of the boot
// for which the files are complete.
func (s *Store) syncToDisk(ctx context.Context, dir string) {
	_, done, err := s.o.Begin(context.WithoutCancel(ctx))
	if err != nil {
		return // the mark is kept, so the files are unpacked again after the machine restarts
	}
	go func() {
		defer done()
		err := bundle.Flush(dir)
		if err == nil {
			err = os.Remove(incompleteMark(dir))
		}
		if err != nil && Exists(dir) {
			s.o.Logger.Warn("could not sync an app's files to the disk; they are unpacked again after the machine restarts", "error", err)
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
