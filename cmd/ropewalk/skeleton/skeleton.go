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

	"github.com/ropewalk/ropewalk/plugins"
)

//go:embed files
var files embed.FS

// Options say what to write.
type Options struct {
	Kind   plugins.Kind
	Name   string // of the plugin, its folder and its executable: a-z, 0-9 and -
	Module string // the module's path; "" means example.com/<name>
	SDK    SDK
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Write writes a plugin's module into dir, which must be empty or not there.
func Write(dir string, o Options) error {
	words, err := wordsOf(o)
	if err != nil {
		return err
	}
	if err := o.SDK.check(); err != nil { // before anything is written
		return err
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, from := range []string{"files/" + string(o.Kind), "files"} {
		if err := expand(from, dir, words); err != nil {
			return err
		}
	}
	return o.SDK.writeModule(dir, words.Module)
}

// kindWords is the file in the folder of a kind that defines what the other templates include: "what", the
// name of such a plugin in prose, and "usage", its section of the configuration.
const kindWords = "words.tmpl"

// words are what the templates speak of.
type words struct {
	Kind, Name, Module string

	Release     string // the version of ropewalk that CI runs
	Development bool   // the SDK comes from a checkout
}

func wordsOf(o Options) (words, error) {
	w := words{Kind: string(o.Kind), Name: o.Name, Module: o.Module, Release: "latest", Development: o.SDK.Dir != ""}
	if !w.Development {
		w.Release = Release(o.SDK.Version)
	}
	if !slices.Contains(plugins.Kinds(), o.Kind) {
		return w, fmt.Errorf("%q is not a kind of plugin: the kinds are %v", o.Kind, plugins.Kinds())
	}
	if !nameForm.MatchString(o.Name) {
		return w, fmt.Errorf("%q is not a plugin's name: names are made of a-z, 0-9 and -", o.Name)
	}
	if w.Module == "" {
		w.Module = "example.com/" + o.Name
	}
	return w, nil
}

// expand writes the templates of one folder of files/ and, but at its top, of those beneath.
func expand(from, dir string, w words) error {
	return fs.WalkDir(files, from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if from == "files" && path != from {
				return fs.SkipDir // the kinds
			}
			return nil
		}
		if entry.Name() == kindWords {
			return nil
		}
		parsed, err := template.ParseFS(files, path, "files/"+w.Kind+"/"+kindWords)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, w); err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(target(path), from+"/")))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text.Bytes(), 0o644)
	})
}

// target is a template's path as it is written; a leading dot cannot be embedded.
func target(path string) string {
	path = strings.TrimSuffix(path, ".tmpl")
	path = strings.Replace(path, "files/gitignore", "files/.gitignore", 1)
	return strings.Replace(path, "files/ci.yaml", "files/.github/workflows/ci.yaml", 1)
}
