package bundle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hostileNames returns entry names that must be refused wherever they appear.
func hostileNames() []string {
	names := []string{
		"../evil", "../../evil", "a/../../evil", "a/../evil", "./evil", "a/./evil", "a//evil", "/evil", "//evil", "/etc/passwd", "..", ".", "a/..", "/", "",
		`..\evil`, `a\..\..\evil`, `\evil`, `C:\evil`, "C:/evil", "c:evil", `\\host\share\evil`, "evil\x00.js", "\x00", "a\nb", "a\rb", "a\x1b[2J", "a\x7f", "a\u0085b", "a\u202egpj.js",
		"\xff\xfe", "a/\xc0\xaf/evil", "con", "CON", "Con.txt", "a/nul", "NUL.tar.gz", "aux.js", "PRN", "com1", "COM9.log", "lpt1", "LPT3.x", "conin$", "CONOUT$", "nul .txt",
		strings.Repeat("a/", 200) + "a", strings.Repeat("x", 300), strings.Repeat("ab/", 500) + "c", "....//evil/..", "a/b/../../../evil", "../manifest.json",
	}
	for depth := 3; depth < 20; depth++ {
		names = append(names, strings.Repeat("../", depth)+"evil")
	}
	return names
}

// hostileArchives returns archives that must be refused. The key says what is wrong with the archive.
func hostileArchives(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	add := func(name string, raw []byte) { all[name] = raw }
	for i, name := range hostileNames() {
		add(fmt.Sprintf("name %d %.40q", i, name), bundleOf(t, rawEntry{name: name, data: "x"}))
		add(fmt.Sprintf("name %d first, with an honest local name", i), rawZip([]rawEntry{{name: name, local: "honest", data: "x", method: 8}, manifestEntry(t)}))
	}
	for name, mode := range map[string]fs.FileMode{"symlink": fs.ModeSymlink, "pipe": fs.ModeNamedPipe, "socket": fs.ModeSocket, "device": fs.ModeDevice, "character device": fs.ModeDevice | fs.ModeCharDevice} {
		for i, target := range []string{"/etc/passwd", "../../..", "manifest.json"} {
			add(fmt.Sprintf("%s to %s", name, target), bundleOf(t, rawEntry{name: "link", data: target, mode: mode | 0o777}))
			add(fmt.Sprintf("%s %d then a file through it", name, i), bundleOf(t, rawEntry{name: "link", data: target, mode: mode | 0o777}, rawEntry{name: "link/x", data: "x"}))
			add(fmt.Sprintf("%s %d that says it is a directory", name, i), bundleOf(t, rawEntry{name: "link/", data: target, mode: mode | 0o777}))
		}
	}
	for i, pair := range [][2]string{{"a", "a"}, {"a", "A"}, {"dir/x", "DIR/X"}, {"straße", "STRASSE"}, {"\u00e9", "e\u0301"}, {"K", "\u212a"}, {"a", "a/b"}, {"a/b", "a"}, {"A", "a/b/c"}, {"manifest.JSON", "x"}} {
		add(fmt.Sprintf("duplicate %d", i), bundleOf(t, rawEntry{name: pair[0], data: "1"}, rawEntry{name: pair[1], data: "2"}))
	}
	for _, flags := range []uint16{0x1, 0x40, 0x2000, 0x2041} {
		add(fmt.Sprintf("encryption flags %x", flags), bundleOf(t, rawEntry{name: "a", data: "x", flags: flags}))
	}
	for _, method := range []uint16{1, 6, 9, 12, 14, 93, 95, 99, 65535} {
		add(fmt.Sprintf("compression method %d", method), bundleOf(t, rawEntry{name: "a", data: "x", method: method}))
	}
	hostileSizes(t, add)
	hostileStructure(t, add)
	return all
}

func hostileSizes(t testing.TB, add func(string, []byte)) {
	zeros := strings.Repeat("\x00", 24<<20)
	bomb := rawEntry{name: "bomb", data: zeros, method: 8}
	bomb.packed = pack(bomb)
	add("a bomb", bundleOf(t, bomb))
	small := uint32(10)
	bomb.declared = &small
	add("a bomb that says it is small", bundleOf(t, bomb))
	huge := uint32(0xfffffffe)
	add("a file that says it is huge", bundleOf(t, rawEntry{name: "a", data: "x", declared: &huge}))
	wrong := uint32(7)
	add("a wrong checksum", bundleOf(t, rawEntry{name: "a", data: "x", crc: &wrong}))
	add("a wrong checksum of a compressed file", bundleOf(t, rawEntry{name: "a", data: "x", method: 8, crc: &wrong}))
	add("a directory with content", bundleOf(t, rawEntry{name: "d/", data: "x", mode: fs.ModeDir | 0o755}))
	zero := 0
	add("a name for the manifest's own bytes", bundleOf(t, rawEntry{name: "a", at: &zero}))
	kernel := rawEntry{name: "kernel", data: zeros[:10<<20], method: 8}
	kernel.packed = pack(kernel)
	overlapping, one := []rawEntry{manifestEntry(t), kernel}, 1
	for i := range 20 {
		overlapping = append(overlapping, rawEntry{name: fmt.Sprintf("copy%d", i), data: kernel.data, method: 8, at: &one, packed: kernel.packed})
	}
	add("a bomb of many names for the same bytes", rawZip(overlapping))
	inner := string(rawZip([]rawEntry{{name: "inner", data: "x"}}))
	quoted := rawZip([]rawEntry{manifestEntry(t), {name: "outer", data: inner}})
	add("an entry that is also inside another", pointInside(quoted, inner))
	many := []rawEntry{manifestEntry(t)}
	for i := range 20_000 {
		many = append(many, rawEntry{name: fmt.Sprintf("f%d", i)})
	}
	add("too many files", rawZip(many))
}

// pointInside adds a central header for the entry in the archive inner, which is stored uncompressed in raw.
func pointInside(raw []byte, inner string) []byte {
	at := strings.Index(string(raw), inner)
	end := len(raw) - endLen
	start := int(binary.LittleEndian.Uint32(raw[end+16:]))
	innerEnd := len(inner) - endLen
	innerStart := int(binary.LittleEndian.Uint32([]byte(inner)[innerEnd+16:]))
	header := []byte(inner[innerStart:innerEnd])
	binary.LittleEndian.PutUint32(header[42:], uint32(at))
	out := slices.Concat(raw[:end], header, raw[end:])
	end += len(header)
	binary.LittleEndian.PutUint16(out[end+8:], 3)
	binary.LittleEndian.PutUint16(out[end+10:], 3)
	binary.LittleEndian.PutUint32(out[end+12:], uint32(end-start))
	return out
}

func hostileStructure(t testing.TB, add func(string, []byte)) {
	honest := bundleOf(t, rawEntry{name: "a", data: strings.Repeat("a", 1000), method: 8})
	end := len(honest) - endLen
	patch := func(at int, value uint32) []byte {
		out := slices.Clone(honest)
		binary.LittleEndian.PutUint32(out[at:], value)
		return out
	}
	add("nothing", nil)
	add("not a zip", []byte("#!/bin/sh\nid\n"))
	add("an empty zip", rawZip(nil))
	add("no manifest", rawZip([]rawEntry{{name: "a", data: "x"}}))
	add("a manifest in a folder", rawZip([]rawEntry{{name: "x/manifest.json", data: "{}"}}))
	add("a manifest that is a folder", rawZip([]rawEntry{{name: "manifest.json/", mode: fs.ModeDir | 0o755}}))
	add("an invalid manifest", rawZip([]rawEntry{{name: ManifestName, data: "{}"}}))
	add("a manifest that is a bomb", rawZip([]rawEntry{{name: ManifestName, data: strings.Repeat(" ", 30<<20), method: 8}}))
	add("more headers than it promised", promise(honest, 1))
	add("fewer headers than it promised", promise(honest, 9))
	add("a directory elsewhere", patch(end+16, 0))
	add("a directory beyond the end", patch(end+16, 0x7fffffff))
	add("a directory of the wrong length", patch(end+12, 1))
	add("zip64 marks", patch(end+16, 0xffffffff))
	add("bytes before the zip", append([]byte("MZ stub"), honest...))
	for _, part := range []int{4, 3, 2} {
		add(fmt.Sprintf("its first %d quarters", part-1), honest[:len(honest)*(part-1)/part])
	}
	add("its end alone", honest[end:])
	add("bytes missing in the middle", slices.Concat(honest[:60], honest[80:]))
	noise := slices.Clone(honest)
	for i := len(noise) - endLen - 200; i > 100; i -= 3 {
		noise[i] ^= 0x5a
	}
	add("noise over its data", noise)
	add("a signature without a zip", sign(nil, "sig", false))
	add("a signature over half a zip", sign(honest[:len(honest)/2], "sig", false))
}

func promise(raw []byte, n uint16) []byte {
	out := slices.Clone(raw)
	binary.LittleEndian.PutUint16(out[len(out)-endLen+8:], n)
	binary.LittleEndian.PutUint16(out[len(out)-endLen+10:], n)
	return out
}

// Row 9 of docs/security.md: hostile archives are refused, leave nothing behind, write nothing outside, and use
// at most 64 MB of additional memory.
func TestHostileArchivesAreRefused(t *testing.T) {
	archives := hostileArchives(t)
	if len(archives) < 200 {
		t.Fatalf("only %d archives", len(archives))
	}
	outer := t.TempDir()
	parent := filepath.Join(outer, "a", "b", "c")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hostile.mcpb")
	before := tree(t, outer)
	for name, raw := range archives {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		if err := Unpack(t.Context(), path, filepath.Join(parent, "dest"), Limits{}); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: got %v", name, err)
		}
		if runtime.ReadMemStats(&end); end.TotalAlloc-start.TotalAlloc > 64<<20 {
			t.Errorf("%s: allocated %d bytes", name, end.TotalAlloc-start.TotalAlloc)
		}
		if after := tree(t, outer); !slices.Equal(before, after) {
			t.Fatalf("%s: left behind %q", name, after)
		}
	}
}

func TestLimitsCountWhatIsWritten(t *testing.T) {
	file := rawEntry{name: "a", data: strings.Repeat("x", 1000)}
	second := rawEntry{name: "b", data: file.data}
	lie := uint32(1)
	liar := rawEntry{name: "a", data: strings.Repeat("x", 1000), method: 8, declared: &lie}
	for name, c := range map[string]struct {
		limits Limits
		raw    []byte
		ok     bool
	}{
		"within all limits":        {Limits{Files: 3, Total: 4000, Single: 1000, Archive: 1 << 20}, bundleOf(t, file, second), true},
		"one entry too many":       {Limits{Files: 2}, bundleOf(t, file, second), false},
		"one file too large":       {Limits{Single: 999}, bundleOf(t, file), false},
		"all too large":            {Limits{Total: 1999}, bundleOf(t, file, second), false},
		"the archive too large":    {Limits{Archive: 100}, bundleOf(t, file), false},
		"a file with a false size": {Limits{Single: 999}, bundleOf(t, liar), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Unpack(t.Context(), writeFile(t, c.raw), filepath.Join(t.TempDir(), "b"), c.limits)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrArchive) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// Memory use does not depend on the size of the archive (row 9 of docs/security.md).
func TestUnpackKeepsMemoryBounded(t *testing.T) {
	path := writeFile(t, bundleOf(t, rawEntry{name: "big", data: strings.Repeat("0123456789abcdef", 12<<20/16), method: 0},
		rawEntry{name: "bomb", data: strings.Repeat("\x00", 60<<20), method: 8}))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Unpack(t.Context(), path, filepath.Join(t.TempDir(), "b"), Limits{Ratio: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Fatalf("allocated %d bytes", grown)
	}
}
