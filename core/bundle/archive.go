package bundle

import (
	"archive/zip"
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// archive is an open .mcpb file whose entries have been checked.
type archive struct {
	*os.File
	size    int64 // bytes of the zip, without a signature
	entries []entry
}

func openArchive(path string, limits Limits) (a *archive, err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limits.Archive {
		return nil, refused("it is %d bytes long; the limit is %d", info.Size(), limits.Archive)
	}
	r, size := zipPart(f, info.Size())
	if err := countEntries(r, size, limits.Files); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, refused("%w", err)
	}
	a = &archive{File: f, size: size}
	if a.entries, err = checkEntries(z.File, limits); err != nil {
		return nil, err
	}
	return a, checkOverlap(a.entries)
}

// openRegular opens a regular file. Anything else, such as a pipe that would block, is rejected without opening
// it.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refused("%s is not a regular file", path)
	}
	return os.Open(path)
}

const (
	endLen    = 22 // end of central directory record, without its comment
	headerLen = 46 // central directory header, without its names
	localLen  = 30 // local file header, without its names

	// maxDirectory is far larger than 20,000 entries with long names need.
	maxDirectory = 16 << 20
)

// countEntries walks the central directory before archive/zip does, because archive/zip keeps every header it
// finds, regardless of the number the archive declares.
func countEntries(r io.ReaderAt, size int64, limit int) error {
	end, at, err := directoryEnd(r, size)
	if err != nil {
		return err
	}
	length, start := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	if start+length != at || length > maxDirectory {
		return refused("its central directory is damaged or uses zip64, which no bundle needs")
	}
	dir := bufio.NewReader(io.NewSectionReader(r, start, length))
	header := make([]byte, headerLen)
	for n := 0; ; n++ {
		if _, err := io.ReadFull(dir, header); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil || binary.LittleEndian.Uint32(header) != 0x02014b50 {
			return refused("its central directory is damaged")
		}
		if n == limit {
			return refused("it contains more than %d entries", limit)
		}
		skip := 0
		for _, field := range []int{28, 30, 32} { // name, extra, comment
			skip += int(binary.LittleEndian.Uint16(header[field:]))
		}
		if _, err := dir.Discard(skip); err != nil {
			return refused("its central directory is damaged")
		}
	}
}

// directoryEnd finds the last end of central directory record, as archive/zip does.
func directoryEnd(r io.ReaderAt, size int64) (record []byte, at int64, err error) {
	tail := make([]byte, min(size, endLen+65535))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	for i := len(tail) - endLen; i >= 0; i-- {
		if binary.LittleEndian.Uint32(tail[i:]) == 0x06054b50 {
			return tail[i : i+endLen], size - int64(len(tail)-i), nil
		}
	}
	return nil, 0, refused("it is not a zip archive")
}

// checkOverlap rejects entries that share bytes, as in zip bombs that reuse one compressed block.
func checkOverlap(entries []entry) error {
	type span struct{ from, to int64 }
	var spans []span
	for _, e := range entries {
		from, err := e.file.DataOffset()
		if err != nil {
			return refused("%q: %w", e.name, err)
		}
		header := int64(localLen + len(e.file.Name))
		spans = append(spans, span{from - header, from + int64(e.file.CompressedSize64)})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return refused("two entries share the same bytes")
		}
	}
	return nil
}
