package bundle

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// rawEntry is an entry in a zip file that no normal packing tool would create.
type rawEntry struct {
	name     string
	local    string // name in the local header; "" means the same name
	data     string
	mode     fs.FileMode // 0 means a regular file with mode 0644
	flags    uint16
	method   uint16  // 0 is store, 8 is deflate; data with other methods is written uncompressed
	declared *uint32 // the uncompressed size in the headers, if not the real one
	crc      *uint32
	at       *int // if not nil, the index of an earlier entry whose local header is used
	dos      bool
	packed   []byte // compressed data, if it was already calculated
}

// rawZip writes a zip file byte by byte: the local headers and data, the central directory, and the end record.
func rawZip(entries []rawEntry) []byte {
	var out, dir bytes.Buffer
	offsets := make([]int, len(entries))
	for i, e := range entries {
		body := pack(e)
		offsets[i] = out.Len()
		if e.at != nil {
			offsets[i] = offsets[*e.at]
		} else {
			local := e.name
			if e.local != "" {
				local = e.local
			}
			put(&out, 0x04034b50, e.header(body), uint16(len(local)), uint16(0))
			out.WriteString(local)
			out.Write(body)
		}
		creator, attrs := uint16(3<<8|20), uint32(unixMode(e.mode))<<16
		if e.dos {
			creator = 20
		}
		put(&dir, 0x02014b50, creator, e.header(body), uint16(len(e.name)), uint16(0), uint16(0), uint16(0), uint16(0), attrs, uint32(offsets[i]))
		dir.WriteString(e.name)
	}
	start := out.Len()
	out.Write(dir.Bytes())
	put(&out, 0x06054b50, uint32(0), uint16(len(entries)), uint16(len(entries)), uint32(dir.Len()), uint32(start), uint16(0))
	return out.Bytes()
}

func put(out *bytes.Buffer, signature uint32, fields ...any) {
	for _, f := range append([]any{signature}, fields...) {
		if raw, ok := f.([]byte); ok {
			out.Write(raw)
			continue
		}
		_ = binary.Write(out, binary.LittleEndian, f)
	}
}

// header returns the part that local and central headers share, from the required version to the sizes.
func (e rawEntry) header(body []byte) []byte {
	var h bytes.Buffer
	size, crc := uint32(len(e.data)), crc32.ChecksumIEEE([]byte(e.data))
	if e.declared != nil {
		size = *e.declared
	}
	if e.crc != nil {
		crc = *e.crc
	}
	for _, f := range []any{uint16(20), e.flags, e.method, uint32(0), crc, uint32(len(body)), size} {
		_ = binary.Write(&h, binary.LittleEndian, f)
	}
	return h.Bytes()
}

func pack(e rawEntry) []byte {
	if e.packed != nil {
		return e.packed
	}
	if e.method != 8 {
		return []byte(e.data)
	}
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = w.Write([]byte(e.data))
	_ = w.Close()
	return b.Bytes()
}

func unixMode(mode fs.FileMode) uint16 {
	kinds := map[fs.FileMode]uint16{0: 0o100000, fs.ModeDir: 0o040000, fs.ModeSymlink: 0o120000, fs.ModeNamedPipe: 0o010000,
		fs.ModeSocket: 0o140000, fs.ModeDevice: 0o060000, fs.ModeDevice | fs.ModeCharDevice: 0o020000}
	perm := uint16(mode.Perm())
	if mode == 0 {
		perm = 0o644
	}
	if mode&fs.ModeSetuid != 0 {
		perm |= 0o4000
	}
	return kinds[mode.Type()] | perm
}

// manifestEntry returns the entry that every bundle must have.
func manifestEntry(t testing.TB) rawEntry {
	return rawEntry{name: ManifestName, data: string(encode(t, minimal()))}
}

// bundleOf returns an archive with a manifest and the given entries.
func bundleOf(t testing.TB, entries ...rawEntry) []byte {
	return rawZip(append([]rawEntry{manifestEntry(t)}, entries...))
}

func writeFile(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hello.mcpb")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
