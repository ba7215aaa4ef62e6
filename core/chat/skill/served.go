package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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
// skill is left out if it does not conform to the Agent Skills specification (no description, or an invalid name), or
// if its files exceed the limits.
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
	if !ValidName(s.Name) || s.Description == "" {
		return served, errors.New("it needs a description, and a name of at most 64 lower-case letters, digits and hyphens")
	}
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
	var all map[string]any
	if err := yaml.Unmarshal(front, &all); err != nil {
		return nil, err
	}
	return json.Marshal(withDates(all))
}

// withDates replaces the dates in a YAML value, which JSON does not have, with their text.
func withDates(value any) any {
	switch v := value.(type) {
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339Nano)
	case map[string]any:
		for name, inner := range v {
			v[name] = withDates(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withDates(inner)
		}
	}
	return value
}
