package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/core"
)

// Limits of a skill that is served.
const (
	maxServedFiles = 200
	maxServedBytes = 4 << 20
)

// mainFile is the name of the file that every served skill has.
const mainFile = "SKILL.md"

// Served returns the skills of a workspace with all their files, for MCP clients: the one with that name, or all if
// name is "". If a skill has its own folder, its files are those in the folder, except for hidden files and links. A
// skill is left out if its front matter does not conform to the Agent Skills specification, or if its files exceed the
// limits; the reason is logged once until it changes.
func (l *Library) Served(workspace, name string) (all []core.ServedSkill) {
	for _, s := range l.Skills(workspace) {
		if name != "" && s.Name != name {
			continue
		}
		served, err := s.served()
		l.reportUnserved(s.file, err)
		if err == nil {
			all = append(all, served)
		}
	}
	return all
}

// reportUnserved logs why a skill is not served, unless it is the same reason as last time. err is nil if it is served.
func (l *Library) reportUnserved(file string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.unserved, file)
		return
	}
	if l.unserved[file] != err.Error() {
		l.unserved[file] = err.Error()
		l.log.Warn("skill not served to MCP clients", "file", file, "error", err)
	}
}

func (s Skill) served() (served core.ServedSkill, err error) {
	served.Name = s.Name
	if filepath.Base(s.file) == mainFile {
		served.Files, err = readFiles(filepath.Dir(s.file))
	} else {
		served.Files = make([]core.SkillFile, 1)
		served.Files[0].Path = mainFile
		served.Files[0].Content, err = readFile(s.file)
	}
	if err != nil {
		return served, err
	}
	for _, f := range served.Files {
		if f.Path == mainFile {
			served.Frontmatter, err = frontmatter(f.Content)
			return served, err
		}
	}
	return served, fs.ErrNotExist
}

// readFiles reads the files in the folder of a skill.
func readFiles(folder string) (files []core.SkillFile, err error) {
	root, err := os.OpenRoot(folder) // so that no link leads elsewhere
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	size := int64(0)
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > maxServedBytes || len(files) == maxServedFiles {
			return fmt.Errorf("it has more than %d files, or more than %d bytes in them", maxServedFiles, maxServedBytes)
		}
		content, err := root.ReadFile(path)
		files = append(files, core.SkillFile{Path: path, Content: content})
		return err
	})
	return files, err
}

// frontmatter returns the front matter of a skill's file as JSON.
func frontmatter(content []byte) (json.RawMessage, error) {
	front, _, err := split(content)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	var all map[string]any
	if err := yaml.Unmarshal(front, &document); err != nil {
		return nil, err
	}
	readAsYAML12(&document)
	if err := document.Decode(&all); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	_, err = core.CheckSkillFrontmatter(encoded)
	return encoded, err
}

// number matches the numbers of YAML 1.2 (core schema); zeros matches what yaml would read as an octal number.
var (
	number = regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	zeros  = regexp.MustCompile(`^([-+]?)0+([0-9])`)
)

// readAsYAML12 gives scalars the type that they have in YAML 1.2, because hosts read YAML 1.2 and compare the front
// matter with the file. In YAML 1.2, dates, merge keys, 1_000 and 0b11 are text, and 017 is 17. All keys become text.
func readAsYAML12(n *yaml.Node) {
	for i, inner := range n.Content {
		readAsYAML12(inner)
		if inner.Kind != yaml.ScalarNode {
			continue
		}
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		switch tag := inner.ShortTag(); {
		case isKey || tag == "!!timestamp":
			inner.Tag = "!!str"
		case inner.Style&yaml.TaggedStyle != 0 || tag != "!!int" && tag != "!!float":
		case number.MatchString(inner.Value):
			inner.Value, inner.Tag = zeros.ReplaceAllString(inner.Value, "$1$2"), ""
		default:
			inner.Tag = "!!str"
		}
	}
}
