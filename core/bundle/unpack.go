package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Limits limit what one archive may unpack to. A zero field means the default.
type Limits struct {
	Files   int   // entries, including directories; default 20,000
	Total   int64 // bytes of all files; default 512 MiB
	Single  int64 // bytes of one file; default 256 MiB
	Ratio   int64 // bytes unpacked per byte of archive, beyond the first 16 MiB; default 100
	Archive int64 // bytes of the archive itself; default 512 MiB
}

// ratioFree is how many bytes any archive may unpack to, whatever its size, because small texts compress very well.
const ratioFree = 16 << 20

func (l Limits) withDefaults() Limits {
	if l.Files == 0 {
		l.Files = 20_000
	}
	if l.Total == 0 {
		l.Total = 512 << 20
	}
	if l.Single == 0 {
		l.Single = 256 << 20
	}
	if l.Ratio == 0 {
		l.Ratio = 100
	}
	if l.Archive == 0 {
		l.Archive = 512 << 20
	}
	return l
}

// ErrArchive is wrapped by the error for every rejected archive: the archive is at fault, not the disk.
var ErrArchive = errors.New("bundle archive refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrArchive, fmt.Errorf(format, args...))
}

// Unpack unpacks an .mcpb file to dest, which must not exist yet, although its parent must. Everything is written to a
// temporary directory next to dest, synced to disk and renamed once. This way, dest exists completely or not at all,
// and nothing is left behind if Unpack fails or ctx ends.
//
// An archive is rejected, with an error wrapping ErrArchive, if it has no manifest.json, exceeds a limit, or contains a
// bad entry. An entry is bad if it is absolute, leaves the directory, is a link or any other special file, is
// encrypted, or shares its name (ignoring case) or its bytes with another. An entry is also bad if its name contains a
// backslash or a control character, or is a device name. Only the executable bit of a file's mode is kept, and a binary
// server's entry point always gets it. A signature (MCPB_SIG_V1) at the end of the file is skipped: Unpack does not
// verify it.
func Unpack(ctx context.Context, archivePath, dest string, limits Limits) error {
	limits = limits.withDefaults()
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unpack to %s: %w", dest, fs.ErrExist)
	}
	tmp, err := stage(ctx, archivePath, filepath.Dir(dest), limits)
	if err != nil {
		return err
	}
	if err := publish(tmp, dest); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// stage unpacks an archive to a new directory in parent and returns it. If it fails, nothing is left behind.
func stage(ctx context.Context, archivePath, parent string, limits Limits) (string, error) {
	a, err := openArchive(archivePath, limits)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.Close() }()
	tmp, err := os.MkdirTemp(parent, ".unpack-*")
	if err != nil {
		return "", err
	}
	if err := a.unpack(ctx, tmp, limits); err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	return tmp, nil
}

// publish moves a finished directory into place, durably.
func publish(tmp, dest string) error {
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := syncTree(tmp); err != nil {
		return fmt.Errorf("flush %s: %w", tmp, err)
	}
	if err := os.Rename(tmp, dest); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dest))
}

// unpack writes every entry to dir, which must be empty.
func (a *archive) unpack(ctx context.Context, dir string, limits Limits) error {
	m, err := a.manifest()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	budget := min(limits.Total, ratioFree+limits.Ratio*a.size)
	for _, e := range a.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.dir {
			if err := root.MkdirAll(e.name, 0o755); err != nil {
				return err
			}
			continue
		}
		if m.Server.Type == TypeBinary && e.name == path.Clean(m.Server.EntryPoint) {
			e.mode = 0o755
		}
		n, err := e.write(ctx, root, min(limits.Single, budget))
		if err != nil {
			return fmt.Errorf("unpack %q: %w", e.name, err)
		}
		budget -= n
	}
	return nil
}

// write unpacks one file of at most limit bytes and returns its size.
func (e entry) write(ctx context.Context, root *os.Root, limit int64) (n int64, err error) {
	if err := root.MkdirAll(path.Dir(e.name), 0o755); err != nil {
		return 0, err
	}
	src, err := e.file.Open()
	if err != nil {
		return 0, refused("%w", err)
	}
	defer func() { _ = src.Close() }()
	dst, err := root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.mode)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	n, err = io.Copy(dst, io.LimitReader(cancellable{ctx, untrusted{src}}, limit+1))
	if err == nil && n > limit {
		err = refused("unpacks to more than the %d bytes still allowed", limit)
	}
	return n, err
}

// untrusted marks errors about a broken entry as the archive's fault.
type untrusted struct{ io.Reader }

func (u untrusted) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = refused("%w", err)
	}
	return n, err
}

// cancellable reads until its context ends.
type cancellable struct {
	ctx context.Context
	io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}

// manifest reads the manifest from the archive.
func (a *archive) manifest() (*Manifest, error) {
	for _, e := range a.entries {
		if e.name != ManifestName || e.dir {
			continue
		}
		r, err := e.file.Open()
		if err != nil {
			return nil, refused("%w", err)
		}
		defer func() { _ = r.Close() }()
		m, err := readManifest(r)
		if err != nil {
			return nil, refused("%w", err)
		}
		return m, nil
	}
	return nil, refused("it has no %s at its top level", ManifestName)
}
