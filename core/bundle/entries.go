package bundle

import (
	"archive/zip"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxEntryName = 1024
	maxSegment   = 255
	maxDepth     = 64
)

// entry is one checked entry of an archive.
type entry struct {
	name string // slash-separated, clean, inside the directory
	dir  bool
	mode fs.FileMode // 0644 or 0755
	file *zip.File
}

// checkEntries converts the headers of a zip to entries that may be unpacked.
func checkEntries(files []*zip.File, limits Limits) ([]entry, error) {
	entries := make([]entry, 0, len(files))
	seen := names{}
	var total uint64
	for _, f := range files {
		e, err := checkEntry(f)
		if err != nil {
			return nil, err
		}
		if !seen.add(e.name, e.dir) {
			return nil, refused("the name %q appears twice, ignoring case", e.name)
		}
		if f.UncompressedSize64 > uint64(limits.Single) {
			return nil, refused("%q is larger than %d bytes", e.name, limits.Single)
		}
		if total += f.UncompressedSize64; total > uint64(limits.Total) {
			return nil, refused("it unpacks to more than %d bytes", limits.Total)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func checkEntry(f *zip.File) (entry, error) {
	e := entry{name: strings.TrimSuffix(f.Name, "/"), dir: strings.HasSuffix(f.Name, "/"), mode: 0o644, file: f}
	if why := badEntryName(e.name); why != "" {
		return e, refused("the name %q %s", f.Name, why)
	}
	mode := f.Mode()
	switch {
	case f.Flags&0x2041 != 0: // encrypted, strongly encrypted, masked headers
		return e, refused("%q is encrypted", f.Name)
	case e.dir && (mode.Type() != fs.ModeDir || f.UncompressedSize64 != 0):
		return e, refused("%q is a directory with content", f.Name)
	case !e.dir && !mode.IsRegular():
		return e, refused("%q is neither a regular file nor a directory", f.Name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return e, refused("%q uses an unsupported compression method (%d)", f.Name, f.Method)
	}
	if mode&0o111 != 0 {
		e.mode = 0o755
	}
	return e, nil
}

// badEntryName returns why a name is rejected; "" if it is not.
func badEntryName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxEntryName || strings.Count(name, "/") >= maxDepth:
		return "is too long or too deep"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case core.CheckText("name", name) != nil:
		return "contains a control character"
	case strings.Contains(name, `\`):
		return "contains a backslash"
	case strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':':
		return "is absolute"
	}
	for segment := range strings.SplitSeq(name, "/") {
		switch {
		case segment == "" || segment == "." || segment == "..":
			return "does not stay in its directory"
		case len(segment) > maxSegment:
			return "is too long"
		case isDevice(segment):
			return "is a device name on some systems"
		}
	}
	return ""
}

// isDevice reports whether Windows would open a device by this name, whatever its extension.
func isDevice(segment string) bool {
	stem, _, _ := strings.Cut(segment, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		port, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && len(port) == 1 && port[0] >= '1' && port[0] <= '9'
}

// names records the names seen so far, case-folded. The value is true for files.
type names map[string]bool

// add reports whether name may be unpacked in addition to the earlier ones: no file twice, and no file where
// another name needs a directory.
func (n names) add(name string, dir bool) bool {
	folded := cases.Fold().String(norm.NFC.String(name))
	file, known := n[folded]
	if known && (file || !dir) {
		return false
	}
	n[folded] = !dir
	for parent := path.Dir(folded); parent != "."; parent = path.Dir(parent) {
		if n[parent] {
			return false
		}
		n[parent] = false
	}
	return true
}
