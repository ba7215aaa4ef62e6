// Command releasedocs copies the documents of a release into its archive: README.md, CHANGELOG.md and docs/*.md.
//
// A link to a file that is not in the archive becomes one to the file in the repository, as of the release. What the
// changelog has under Unreleased gets the version as its heading.
//
//	go run ./internal/releasedocs -version 1.2.3 -commit 0123abc -date 2026-01-31 dist/ropewalk_1.2.3_linux_amd64
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repository is where links lead that do not stay in the archive.
const repository = "https://github.com/ropewalk/ropewalk"

// release is what the documents are prepared for.
type release struct {
	version string // without a v in front; anything else than a semantic version is a build between releases
	commit  string // "" when it is not known
	date    string // YYYY-MM-DD
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "version of the release")
	flag.StringVar(&r.commit, "commit", "", "commit that is built")
	flag.StringVar(&r.date, "date", "", "date of the commit, YYYY-MM-DD")
	flag.Parse()
	if flag.NArg() != 1 || r.version == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := r.copyTo(".", flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "releasedocs:", err)
		os.Exit(1)
	}
}

// copyTo copies the documents of the repository at root into the archive's folder.
func (r release) copyTo(root, archive string) error {
	files, err := documents(root)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		if file == changelog {
			text = []byte(r.headed(string(text)))
		}
		linked, err := r.link(root, file, string(text), append(files, "LICENSE"))
		if err != nil {
			return err
		}
		to := filepath.Join(archive, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(linked), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const changelog = "CHANGELOG.md"

// documents returns the documents of an archive, by their paths in the repository.
func documents(root string) ([]string, error) {
	files := []string{"README.md", changelog}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	for _, guide := range guides {
		files = append(files, "docs/"+filepath.Base(guide))
	}
	return files, err
}

var (
	semantic   = regexp.MustCompile(`^\d+\.\d+\.\d+([-+].*)?$`)
	afterTag   = regexp.MustCompile(`(-\d+-g[0-9a-f]+|-dirty)$`) // of git describe --dirty
	unreleased = regexp.MustCompile(`(?m)^## Unreleased[ \t]*$`)
)

// ref names the release in an address of the repository: its tag, else its commit.
func (r release) ref() string {
	switch {
	case semantic.MatchString(r.version) && !afterTag.MatchString(r.version):
		return "v" + r.version
	case r.commit != "":
		return r.commit
	}
	return "main"
}

// headed gives what is unreleased the version as its heading, unless there is a section of the version already.
func (r release) headed(text string) string {
	if !semantic.MatchString(r.version) || regexp.MustCompile(`(?m)^## \[?`+regexp.QuoteMeta(r.version)+`\]?( |$)`).MatchString(text) {
		return text
	}
	heading := "## " + r.version
	if r.date != "" {
		heading += " - " + r.date
	}
	return unreleased.ReplaceAllLiteralString(text, heading)
}

// target is the target of a link or an image: "](path)" or "![alternative](path)".
var target = regexp.MustCompile(`(!?)(\[[^\]]*\]\()([^)\s]+)(\))`)

// link makes the links of a document, at a path of the repository, lead to what is in the archive or to the repository.
func (r release) link(root, file, text string, archived []string) (string, error) {
	var wrong error
	fenced := false
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		lines[i] = target.ReplaceAllStringFunc(line, func(match string) string {
			m := target.FindStringSubmatch(match)
			to, err := r.address(root, file, m[3], m[1] != "", archived)
			if err != nil && wrong == nil {
				wrong = err
			}
			return m[1] + m[2] + to + m[4]
		})
	}
	return strings.Join(lines, ""), wrong
}

// address returns the target of a link in file as it is in the archive.
func (r release) address(root, file, to string, image bool, archived []string) (string, error) {
	name, fragment, hasFragment := strings.Cut(to, "#")
	if name == "" || strings.Contains(name, ":") {
		return to, nil // within the document, or elsewhere
	}
	name = path.Join(path.Dir(file), name)
	if slices.Contains(archived, name) {
		return to, nil
	}
	info, err := os.Stat(filepath.Join(root, name))
	if err != nil {
		return "", fmt.Errorf("%s links to %s, which is not in the repository: correct the link", file, to)
	}
	view := "blob"
	switch {
	case info.IsDir():
		view = "tree"
	case image:
		view = "raw"
	}
	to = fmt.Sprintf("%s/%s/%s/%s", repository, view, r.ref(), name)
	if hasFragment {
		to += "#" + fragment
	}
	return to, nil
}
