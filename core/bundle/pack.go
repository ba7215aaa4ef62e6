package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Pack writes the files of a bundle's directory to w, as a tar that is identical for identical files: sorted,
// without times and owners, and with the executable bit as the only mode. sum is the SHA-256 of what was
// written, in hex. Links are packed as links.
//
// A directory is rejected, with an error wrapping ErrArchive, if it exceeds a limit or contains anything other
// than files, directories and links that stay inside the bundle.
func Pack(ctx context.Context, dir string, w io.Writer, limits Limits) (sum string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	hash := sha256.New()
	p := &packing{ctx: ctx, root: root, out: tar.NewWriter(io.MultiWriter(hash, w)), limits: limits.withDefaults()}
	if err := fs.WalkDir(root.FS(), ".", p.add); err != nil {
		return "", err
	}
	if err := p.out.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

type packing struct {
	ctx    context.Context
	root   *os.Root
	out    *tar.Writer
	limits Limits
	files  int
	total  int64
}

// add packs one entry. fs.WalkDir passes them in order.
func (p *packing) add(name string, d fs.DirEntry, err error) error {
	if err == nil {
		err = p.ctx.Err()
	}
	if err != nil || name == "." {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	if p.files++; p.files > p.limits.Files {
		return refused("it contains more than %d entries", p.limits.Files)
	}
	header := &tar.Header{Name: name, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch mode := info.Mode(); {
	case mode.IsDir():
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
	case mode.Type() == fs.ModeSymlink:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = p.root.Readlink(name); err != nil {
			return err
		}
		if !staysInside(name, header.Linkname) {
			return refused("%q is a link that points outside the bundle", name)
		}
	case mode.IsRegular():
		return p.addFile(header, info)
	default:
		return refused("%q is not a file, a directory or a link", name)
	}
	return p.out.WriteHeader(header)
}

func (p *packing) addFile(header *tar.Header, info fs.FileInfo) error {
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	if p.total += header.Size; header.Size > p.limits.Single || p.total > p.limits.Total {
		return refused("with %q, it exceeds the limits: %d bytes in total, and %d in one file", header.Name, p.limits.Total, p.limits.Single)
	}
	if err := p.out.WriteHeader(header); err != nil {
		return err
	}
	f, err := p.root.Open(header.Name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if n, err := io.Copy(p.out, cancellable{p.ctx, f}); err != nil || n != header.Size {
		return fmt.Errorf("pack %q: it changed while it was being packed: %w", header.Name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// staysInside reports whether a link in a bundle points inside the bundle.
func staysInside(name, target string) bool {
	return !path.IsAbs(target) && filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), target)))
}

// UnpackPacked creates dest, whose parent must exist, from the output of Pack. dest must not exist yet. It is
// created completely or not at all, unless the machine crashes; Flush makes it durable. Input whose SHA-256 is
// not sum is rejected.
func UnpackPacked(ctx context.Context, r io.Reader, sum, dest string, limits Limits) error {
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unpack to %s: %w", dest, fs.ErrExist)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dest), ".unpack-*")
	if err != nil {
		return err
	}
	hash := sha256.New()
	if err = unpackTar(ctx, io.TeeReader(cancellable{ctx, r}, hash), tmp, limits.withDefaults()); err == nil {
		if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
			err = refused("its files are not the ones that were packed: their sha256 is %s, not %s", got, sum)
		}
	}
	if err == nil {
		err = errors.Join(os.Chmod(tmp, 0o755), os.Rename(tmp, dest))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// Flush writes a bundle's directory to disk. This may take a long time if other programs are writing.
func Flush(dir string) error {
	return errors.Join(syncTree(dir), syncDir(filepath.Dir(dir)))
}

// unpackTar unpacks a tar into dir, and reads r to its end.
func unpackTar(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in, files, budget := tar.NewReader(r), 0, limits.Total
	for {
		header, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, r) // the SHA-256 covers the end of the tar
			return err
		case err != nil:
			return refused("%w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if files++; files > limits.Files || header.Size > min(limits.Single, budget) {
			return refused("it is larger than allowed")
		}
		budget -= header.Size
		if err := unpackEntry(root, header, in); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

// unpackEntry creates one entry, whose directory came before it.
func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) (err error) {
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(name, 0o755)
	case tar.TypeSymlink:
		if !staysInside(name, header.Linkname) {
			return refused("it is a link that points outside the bundle")
		}
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(header.Mode)&0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	}
	return refused("it is not a file, a directory or a link")
}
