package registrytest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/plugins/registry"
)

// histories lists the versions of generated bundles, oldest first: in the order of semantic versioning, with all
// prereleases before the releases.
var histories = [][]string{
	{"1.0.0"}, {"0.9.0", "0.10.0"}, {"1.9.0", "1.10.0", "1.10.1"}, {"1.0.0-rc.2", "1.0.0-rc.10"}, {"2.0.0-beta", "1.2.0"}, {"3.0.0-rc.1", "1.0.0", "2.0.0"},
	{"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.1", "1.0.0"}, {"9.0.0", "10.0.0", "11.0.0"}, {"2024.9.30", "2024.10.1"}, {"1.0.0-1", "1.0.0-a"},
	{"1.2147483647.0", "1.2147483648.0", "1.20240930120000.0"}, {"1.0.0-RC.1", "1.0.0-alpha.1"},
}

// twins lists last parts of names that an implementation might confuse.
var twins = []string{"notes", "Notes", "no-tes", "no_tes", "no.tes", "notes2", "note", "notes-mcp", "mcp-notes", "notess", "nOtes", "a-bundle-with-a-name-of-so-many-words-that-whatever-cuts-it-is-seen"}

// Platforms says how platform-specific the files of generated bundles are.
type Platforms string

// The platforms that a backend can distinguish.
const (
	Everywhere    Platforms = "everywhere"    // each bundle has one file
	Systems       Platforms = "systems"       // files differ by operating system, which a bundle's manifest can express
	Architectures Platforms = "architectures" // files also differ by architecture
)

// place is a platform that a file is for; "" means any.
type place struct{ os, arch string }

// generate returns a catalogue of n bundles. name combines a scope and a last part into a name.
func generate(r *rand.Rand, n int, name func(scope, last string) string, platforms Platforms) Catalogue {
	c := Catalogue{Whole: true, generated: true}
	for i := range n {
		last := fmt.Sprintf("tool-%d", i)
		if i < len(twins) {
			last = twins[i]
		}
		c.add(r, name([]string{"acme", "Acme", "acme-labs"}[i%3], last), histories[(i+r.IntN(2))%len(histories)], platforms)
	}
	c.add(r, name("zen", twins[0]), histories[5], platforms)
	return c
}

// add adds a bundle with the given versions.
func (c *Catalogue) add(r *rand.Rand, name string, versions []string, platforms Platforms) {
	b := Bundle{Name: name, Title: "Title " + word(r), Description: "Does " + word(r) + " & <" + word(r) + ">, 100%, of what many words are needed to say."}
	for i := range versions {
		b.release(r, versions[i], len(c.Bundles)+i, platforms)
	}
	c.Bundles = append(c.Bundles, b)
}

// release adds the next version.
func (b *Bundle) release(r *rand.Rand, version string, variety int, platforms Platforms) {
	places := [][]place{{{"", ""}}, {{"linux", ""}, {"darwin", ""}}, {{"linux", ""}, {"windows", ""}}, {{"", ""}}, {{"darwin", ""}}}
	switch platforms {
	case Everywhere:
		places = places[:1]
	case Architectures:
		places = append(places, []place{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}, []place{{"linux", "arm64"}}, []place{{"linux", "amd64"}, {"windows", "amd64"}}, []place{{"darwin", "amd64"}, {"windows", "arm64"}})
	}
	v := Version{Version: version}
	for _, p := range places[variety%len(places)] {
		v.Files = append(v.Files, b.file(r, version, p, variety == 0 || r.IntN(20) == 0))
	}
	b.Versions, b.Latest = append(b.Versions, v), version
}

func word(r *rand.Rand) string { return fmt.Sprintf("w%08x", r.Uint32()) }

// file makes a bundle file.
func (b *Bundle) file(r *rand.Rand, version string, p place, large bool) File {
	size := 1 + r.IntN(300)
	if large {
		size = 1<<20 + r.IntN(1<<20)
	}
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	manifest := map[string]any{
		"manifest_version": "0.3", "name": b.Name, "display_name": b.Title, "version": version, "description": b.Description, "author": map[string]any{"name": "kit"},
		"server": map[string]any{"type": "node", "entry_point": "server.js", "mcp_config": map[string]any{"command": "node", "args": []string{"${__dirname}/server.js"}}},
	}
	if p.os != "" {
		manifest["compatibility"] = map[string]any{"platforms": []string{strings.Replace(p.os, "windows", "win32", 1)}}
	}
	raw, _ := json.Marshal(manifest) // strings always encode
	var body bytes.Buffer
	archive := zip.NewWriter(&body)
	for i, content := range [][]byte{raw, payload} {
		// Writing to memory does not fail. The files are stored uncompressed, so that their size is known.
		w, _ := archive.CreateHeader(&zip.FileHeader{Name: []string{"manifest.json", "server.js"}[i], Method: zip.Store, Modified: time.Unix(1_700_000_000, 0)})
		_, _ = w.Write(content)
	}
	_ = archive.Close()
	sum := sha256.Sum256(body.Bytes())
	return File{OS: p.os, Arch: p.arch, SHA256: hex.EncodeToString(sum[:]), Size: int64(body.Len()), Path: hex.EncodeToString(sum[:8]) + ".mcpb", Body: body.Bytes()}
}

// near returns strings that become text when they are decoded, normalized, trimmed, truncated or compared loosely.
func near(text string) []string {
	if text == "" {
		return nil
	}
	_, size := utf8.DecodeRuneInString(text)
	first, rest := text[:size], text[size:]
	all := []string{
		fmt.Sprintf("%%%02X%s", text[0], rest), first + "\u200b" + rest, rest, text[:len(text)-1], strings.ToUpper(text), strings.ToLower(text), "*", "%", strings.Repeat(text, 30), text[strings.LastIndexByte(text, '/')+1:],
	}
	for _, format := range []string{
		"%s ", " %s", "%s\t", "%s\n", "%s\x00", "%s\x00x", "\ufeff%s", "%s/", "/%s", "./%s", "../%s", "%s/.", "%s?x=1", "%s#x", "%s;x", "%sx", "x%s", "%s.mcpb", "%s*", "%s%%", "npm:%s",
	} {
		all = append(all, fmt.Sprintf(format, text))
	}
	for old, replacements := range map[string][]string{"/": {"//", `\`, "%2F"}, "-": {"_", ""}, "_": {"-"}, ".": {"-", "x"}, "s": {"ſ"}} {
		for _, replacement := range replacements {
			all = append(all, strings.ReplaceAll(text, old, replacement))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(other string) bool { return other == text || other == "" })
}

// nearVersions returns other ways to write version v.
func nearVersions(v string) []string {
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ := strings.Cut(rest, ".")
	all := append(near(v), "latest", "LATEST", "stable", "newest", "current", "*", "x", major, major+".x", major+"."+minor, "v"+v, "V"+v, "="+v, "~"+v, "^"+v, ">="+v, "<="+v, v+".0",
		v+"+build", v+"-0", "0"+v, "0.0.0", ">0", v+" || "+v, strings.Repeat("9.", 150)+"9")
	return slices.DeleteFunc(all, func(other string) bool { return other == v })
}

// nearPlatforms returns platforms that resemble a file's platform but do not match it.
func nearPlatforms(f File) (all []registry.Ref) {
	if f.OS == "" {
		return nil
	}
	arch := f.Arch
	if arch == "" {
		arch = "amd64"
	}
	for _, os := range []string{f.OS[:len(f.OS)-1], f.OS + "x", strings.ToUpper(f.OS), "no-system", f.OS + " ", " " + f.OS, "win32", "win", "macos", "osx"} {
		all = append(all, registry.Ref{OS: os, Arch: arch})
	}
	if f.Arch == "" {
		return all
	}
	aliases := map[string][]string{"amd64": {"x86_64", "x86-64", "x64"}, "arm64": {"aarch64", "armv8", "arm"}}[f.Arch]
	for _, arch := range append(aliases, f.Arch[:len(f.Arch)-1], f.Arch+"x", strings.ToUpper(f.Arch), "no-architecture", " "+f.Arch, "386", "") {
		all = append(all, registry.Ref{OS: f.OS, Arch: arch})
	}
	return all
}
