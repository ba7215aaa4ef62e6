package registrytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Catalogue is the contents of a registry, or the part that is known.
type Catalogue struct {
	Bundles []Bundle `json:"bundles"`
	Whole   bool     `json:"-"` // the registry contains nothing else

	mcpb      bool // there are files to fetch
	generated bool // the kit made it, so everything about it is known
}

// Bundle is a bundle of a catalogue.
type Bundle struct {
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Versions    []Version `json:"versions"` // oldest first; the last one is the latest
	Latest      string    `json:"latest"`   // the latest version, for backends that store it

	notFor []registry.Ref // platforms that no version supports
	more   bool           // there may be other versions
}

// Version is a version of a bundle.
type Version struct {
	Version string `json:"version"`
	Files   []File `json:"files"` // nil if nothing is known about them; no two are for the same platform
}

// File is a bundle file.
type File struct {
	OS     string `json:"os"`   // as Go names it; "" for any
	Arch   string `json:"arch"` // as Go names it; "" for any
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Path   string `json:"path"` // of the file in the catalogue's folder
	Body   []byte `json:"-"`
}

// ParseBundles reads a JSON list of what an author knows about the bundles in a registry.
func ParseBundles(raw []byte) (Catalogue, error) {
	type platform struct{ OS, Arch string }
	var all []struct {
		Name     string     `json:"name"`
		Versions []string   `json:"versions"` // oldest first
		For      []platform `json:"for"`      // platforms that the latest version supports, each with its own file
		NotFor   []platform `json:"notFor"`   // platforms that no version supports
		SHA256   string     `json:"sha256"`   // of the latest version for the first platform
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return Catalogue{}, fmt.Errorf("read the known bundles: %w", err)
	}
	var c Catalogue
	for i, known := range all {
		if known.Name == "" || len(known.Versions) == 0 {
			return Catalogue{}, fmt.Errorf("known bundle [%d] needs name and versions", i)
		}
		b := Bundle{Name: known.Name, Latest: known.Versions[len(known.Versions)-1]}
		for _, version := range known.Versions {
			b.Versions = append(b.Versions, Version{Version: version})
		}
		newest := &b.Versions[len(b.Versions)-1]
		for j, p := range known.For {
			newest.Files = append(newest.Files, File{OS: p.OS, Arch: p.Arch})
			if j == 0 {
				newest.Files[0].SHA256 = known.SHA256
			}
		}
		if len(known.For) == 0 && known.SHA256 != "" && len(known.NotFor) == 0 {
			newest.Files = []File{{SHA256: known.SHA256}}
		}
		for _, p := range known.NotFor {
			b.notFor = append(b.notFor, registry.Ref{OS: p.OS, Arch: p.Arch})
		}
		c.Bundles = append(c.Bundles, b)
	}
	return c, nil
}

func (c Catalogue) find(name string) (Bundle, bool) {
	i := slices.IndexFunc(c.Bundles, func(b Bundle) bool { return b.Name == name })
	if i < 0 {
		return Bundle{}, false
	}
	return c.Bundles[i], true
}

// file returns a version's file for a platform.
func (v Version) file(os, arch string) (File, bool) {
	i := slices.IndexFunc(v.Files, func(f File) bool { return (f.OS == "" || f.OS == os) && (f.Arch == "" || f.Arch == arch) })
	if i < 0 {
		return File{}, false
	}
	return v.Files[i], true
}

// answers are the results that the contract allows for Resolve.
type answers struct {
	versions []string // any of these; nil for none
	notFound bool
	file     map[string]File // by version, if known
	other    bool            // a requested version that the catalogue does not know
	words    string          // the expected result, in words
}

// resolve is the model of Resolve, for a name that is not empty.
func (c Catalogue) resolve(ref registry.Ref) answers {
	b, known := c.find(ref.Name)
	if !known {
		return answers{notFound: true, other: !c.Whole, words: "NOT_FOUND, because there is no bundle with this name"}
	}
	a := answers{file: map[string]File{}}
	refused := slices.ContainsFunc(b.notFor, func(no registry.Ref) bool { return no.OS == ref.OS && no.Arch == ref.Arch })
	for i, v := range slices.Backward(b.Versions) {
		latest := i == len(b.Versions)-1
		if ref.Version != "" && ref.Version != v.Version || refused {
			continue
		}
		f, fits := v.file(ref.OS, ref.Arch)
		switch {
		case v.Files == nil: // nothing is known about its platforms
			a.versions, a.notFound = append(a.versions, v.Version), len(b.notFor) > 0 || b.more
		case fits:
			a.versions, a.file[v.Version] = append(a.versions, v.Version), f
			a.notFound = a.notFound || f.OS == "" && !realPlatform(ref)
		default:
			a.notFound = a.notFound || latest // an older version may support the platform
			continue
		}
		if ref.Version == "" && !latest {
			a.notFound = true
		}
		if ref.Version == "" {
			break
		}
	}
	switch {
	case len(a.versions) > 0:
		a.words = "a package with the version " + strings.Join(a.versions, " or ")
	case refused || ref.Version == "" || slices.ContainsFunc(b.Versions, func(v Version) bool { return v.Version == ref.Version }):
		a.notFound, a.words = true, "NOT_FOUND, because the bundle is not for this platform"
	default:
		a.notFound, a.other, a.words = true, b.more, "NOT_FOUND, because the bundle has no such version"
	}
	return a
}

// realPlatform reports whether this is a common Go platform. A bundle without a platform need not support uncommon ones.
func realPlatform(ref registry.Ref) bool {
	return slices.Contains([]string{"linux", "darwin", "windows"}, ref.OS) && slices.Contains([]string{"amd64", "arm64"}, ref.Arch)
}

// fits is the model of Search for one bundle: whether a search for a query must find it, and whether it may.
func (b Bundle) fits(text string) (must, may bool) {
	if text == "" || text == b.Name {
		return true, true
	}
	all := strings.ToLower(strings.Join([]string{b.Name, b.Title, b.Description, b.Latest}, "\n"))
	text = strings.ToLower(strings.TrimSpace(text))
	words := strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	for _, word := range words {
		if !strings.Contains(all, word) {
			return false, false
		}
	}
	return false, len(words) > 0 && text != "" || strings.Contains(all, text)
}

// Write writes the catalogue's files into a folder, with an index in catalogue.json, and removes all other files.
func (c Catalogue) Write(dir string) error {
	keep := map[string]bool{"catalogue.json": true}
	for _, b := range c.Bundles {
		for _, v := range b.Versions {
			for _, f := range v.Files {
				keep[f.Path] = true
				if err := put(filepath.Join(dir, f.Path), f.Body); err != nil {
					return err
				}
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	index, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return put(filepath.Join(dir, "catalogue.json"), index)
}

// put replaces a file atomically. It leaves an existing bundle file of the same length alone, because the names of
// bundle files are digests.
func put(path string, content []byte) error {
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(content)) && strings.HasSuffix(path, ".mcpb") {
		return nil
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
