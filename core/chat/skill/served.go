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
	"unicode/utf8"

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
// limits.
func (l *Library) Served(workspace, name string) (all []core.ServedSkill) {
	for _, s := range l.Skills(workspace) {
		if name != "" && s.Name != name {
			continue
		}
		served, err := s.served()
		if err != nil {
			l.log.Debug("skill not served to MCP clients", "file", s.file, "error", err)
			continue
		}
		all = append(all, served)
	}
	return all
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

// The limits of the Agent Skills specification, in characters.
const (
	maxServedName        = 64
	maxServedDescription = 1024
)

var servedName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

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
	keepText(&document)
	if err := document.Decode(&all); err != nil {
		return nil, err
	}
	name, _ := all["name"].(string)
	description, _ := all["description"].(string)
	switch {
	case len(name) > maxServedName || !servedName.MatchString(name):
		return nil, fmt.Errorf("name: must be text of at most %d lower-case letters and digits, with single hyphens between them", maxServedName)
	case strings.TrimSpace(description) == "" || utf8.RuneCountInString(description) > maxServedDescription:
		return nil, fmt.Errorf("description: must be text of at most %d characters", maxServedDescription)
	}
	return json.Marshal(all)
}

// keepText makes dates, merge keys and all other keys text, as they are for hosts that read YAML 1.2: they compare the
// front matter with the file.
func keepText(n *yaml.Node) {
	for i, inner := range n.Content {
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		if inner.Kind == yaml.ScalarNode && (isKey || inner.ShortTag() == "!!timestamp") {
			inner.Tag = "!!str"
		}
		keepText(inner)
	}
}
