package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const maxEntries = 1000 // maximum number of entries in an archive

// executable returns the path of the plugin itself: the artifact, or the file packed in it.
func (a artifact) executable(staging string) (string, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	first := make([]byte, 4)
	n, err := io.ReadFull(f, first)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("%s is empty", a.source)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	into := filepath.Join(staging, ".unpacked")
	u := unpacking{archive: a.source, left: maxArtifact}
	switch first = first[:n]; {
	case bytes.HasPrefix(first, []byte{0x1f, 0x8b}):
		err = u.within(into, func() error { return u.tar(f) })
	case bytes.Equal(first, []byte("PK\x03\x04")):
		err = u.within(into, func() error { return u.zip(f) })
	default:
		return a.path, nil
	}
	if err != nil {
		return "", err
	}
	return choose(a.source, u.files)
}

// unpacking is an archive being unpacked into a directory.
type unpacking struct {
	archive string
	root    *os.Root
	files   []string // unpacked so far
	entries int
	left    int64 // bytes that may still be unpacked
}

func (u *unpacking) within(dir string, unpack func() error) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if u.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	return errors.Join(unpack(), u.root.Close())
}

func (u *unpacking) tar(r io.Reader) error {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return u.broken(err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return u.broken(err)
		}
		switch header.Typeflag {
		case tar.TypeXGlobalHeader:
		case tar.TypeReg, tar.TypeDir:
			if err := u.add(header.Name, header.FileInfo().Mode(), archive); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is refused: the entry %q is a link or a special file", u.archive, header.Name)
		}
	}
}

func (u *unpacking) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return u.broken(err)
	}
	for _, entry := range archive.File {
		if mode := entry.Mode(); !mode.IsRegular() && !mode.IsDir() {
			return fmt.Errorf("%s is refused: the entry %q is a link or a special file", u.archive, entry.Name)
		}
		content, err := entry.Open()
		if err != nil {
			return u.broken(err)
		}
		err = u.add(entry.Name, entry.Mode(), content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// add unpacks one entry.
func (u *unpacking) add(name string, mode fs.FileMode, content io.Reader) error {
	if u.entries++; u.entries > maxEntries {
		return fmt.Errorf("%s is refused: it has more than %d entries", u.archive, maxEntries)
	}
	path := filepath.FromSlash(name)
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%s is refused: the entry %q points outside the archive", u.archive, name)
	}
	if mode.IsDir() {
		return u.root.MkdirAll(path, 0o700)
	}
	if err := u.root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return u.broken(err)
	}
	out, err := u.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|mode.Perm()&0o100)
	if err != nil {
		return u.broken(err)
	}
	n, err := io.Copy(out, io.LimitReader(content, u.left+1))
	if err := errors.Join(err, out.Close()); err != nil {
		return u.broken(err)
	}
	if u.left -= n; u.left < 0 {
		return fmt.Errorf("%s is refused: it unpacks to more than %d MiB", u.archive, maxArtifact>>20)
	}
	u.files = append(u.files, filepath.Join(u.root.Name(), path))
	return nil
}

func (u *unpacking) broken(err error) error {
	return fmt.Errorf("%s cannot be unpacked (%w): it is damaged or incomplete; fetch it again", u.archive, err)
}
