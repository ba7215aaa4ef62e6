package skeleton

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/ropewalk/ropewalk/examples"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/proto"
)

//go:embed files
var files embed.FS

// Languages returns the languages for which there are skeletons.
func Languages() []string { return []string{"go", "java", "python"} }

// shared returns the files that a language's plugins take from an example. They are unchanged except for the
// example's name. In Java they include the example's adapter, an in-memory session store, which the other kinds
// replace.
func shared(language string) (example string, files []string) {
	switch language {
	case "java":
		return "sessionstore-java", []string{"pom.xml", "sessionstore-java", "src/main/java"}
	case "python":
		return "auth-python", []string{"auth-python", "src/main.py", "src/plugin"}
	}
	return "", nil
}

// Options describe the plugin to write.
type Options struct {
	Language string // one of Languages
	Kind     plugins.Kind
	Name     string // name of the plugin, its directory and its executable: a-z, 0-9 and -
	Release  string // the release of ropewalk for CI; "" means the latest
	Module   string // for Go: the path of the module; "" means example.com/<name>
	SDK      SDK    // for Go
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// isTaken reports whether another file next to the executable has this name.
func isTaken(name string) bool {
	return slices.Contains([]string{"build", "gen", "proto", "src", "target", "testdata"}, name)
}

// Write writes a plugin to dir, which must be empty or not exist.
func Write(dir string, o Options) error {
	words, err := wordsOf(o)
	if err != nil {
		return err
	}
	if o.Language == "go" {
		if err := o.SDK.check(); err != nil { // before anything is written
			return err
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := share(dir, o); err != nil {
		return err
	}
	for _, from := range []string{o.Language + "/" + words.Kind, "any/" + words.Kind, o.Language} {
		if err := expand("files/"+from, dir, words); err != nil {
			return err
		}
	}
	if o.Language == "go" {
		return o.SDK.writeModule(dir, words.Module)
	}
	for _, kind := range []string{"plugin", words.Kind} {
		contract := "ropewalk/" + kind + "/v1/" + kind + ".proto"
		if err := write(filepath.Join(dir, "proto", contract), must(proto.Files().ReadFile(contract)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kindWords is the file in a kind's directory that defines the templates that the others include: "what", the
// name of such a plugin in prose, and "usage", its section in the configuration.
const kindWords = "words.tmpl"

// words is the data for the templates.
type words struct {
	Language, Kind, Name, Module string

	Release     string // the version of ropewalk for CI
	Development bool   // the SDK comes from a checkout
}

func wordsOf(o Options) (words, error) {
	w := words{Language: o.Language, Kind: string(o.Kind), Name: o.Name, Module: o.Module, Release: "latest", Development: o.SDK.Dir != ""}
	if release := Release(o.Release); release != "" {
		w.Release = release
	}
	if !slices.Contains(Languages(), o.Language) {
		return w, fmt.Errorf("%q is not a language that plugin init supports: the languages are %v", o.Language, Languages())
	}
	if !slices.Contains(plugins.Kinds(), o.Kind) {
		return w, fmt.Errorf("%q is not a kind of plugin: the kinds are %v", o.Kind, plugins.Kinds())
	}
	if !nameForm.MatchString(o.Name) {
		return w, fmt.Errorf("%q is not a valid plugin name: names consist of a-z, 0-9 and -", o.Name)
	}
	if isTaken(o.Name) {
		return w, fmt.Errorf("a plugin cannot be called %q, because another file in its folder has that name; choose another name", o.Name)
	}
	if w.Module == "" {
		w.Module = "example.com/" + o.Name
	}
	return w, nil
}

// share writes the files that are the same in every plugin of a language.
func share(dir string, o Options) error {
	example, files := shared(o.Language)
	own := strings.NewReplacer(example, o.Name, "<version>1.0.0</version> <!--", "<version>0.1.0</version> <!--")
	for _, root := range files {
		err := fs.WalkDir(examples.Files(), example+"/"+root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			to, mode := strings.TrimPrefix(path, example+"/"), fs.FileMode(0o644)
			if to == example {
				to, mode = o.Name, 0o755
			}
			return write(filepath.Join(dir, filepath.FromSlash(to)), []byte(own.Replace(string(must(examples.Files().ReadFile(path))))), mode)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expand writes the templates in one directory of files/ and its subdirectories, except those for kinds.
func expand(from, dir string, w words) error {
	return fs.WalkDir(files, from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == from {
			return nil // there are no templates for this kind
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(plugins.Kinds(), plugins.Kind(entry.Name())) && path != from {
				return fs.SkipDir
			}
			return nil
		}
		if entry.Name() == kindWords {
			return nil
		}
		parsed, err := template.ParseFS(files, path, "files/any/"+w.Kind+"/"+kindWords)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, w); err != nil {
			return err
		}
		to, mode := target(strings.TrimPrefix(path, from+"/")), fs.FileMode(0o644)
		if to == "build" {
			mode = 0o755
		}
		return write(filepath.Join(dir, filepath.FromSlash(to)), text.Bytes(), mode)
	})
}

func write(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, mode)
}

// must returns the content of an embedded file.
func must(content []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return content
}

// target returns the path to which a template is written. Names with a leading dot cannot be embedded.
func target(path string) string {
	switch path = strings.TrimSuffix(path, ".tmpl"); path {
	case "gitignore":
		return ".gitignore"
	case "ci.yaml":
		return ".github/workflows/ci.yaml"
	}
	return path
}
