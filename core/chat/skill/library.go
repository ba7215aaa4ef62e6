package skill

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// maxFiles limits how many entries of a folder are considered.
const maxFiles = 2000

// Library finds workspaces' skills. It is safe for concurrent use.
type Library struct {
	home string
	more []string // the configured folders
	kept Kept     // nil if no other servers share the state
	log  hclog.Logger

	mu       sync.Mutex
	folders  map[string]map[string]file // by folder and path within it
	unserved map[string]string          // why the skills in these files are not served to MCP clients
}

// file is the file of a skill as it was when it was last read.
type file struct {
	size     int64
	modified time.Time
	skill    Skill
	broken   bool
}

// NewLibrary returns a library of the skills in <home>/skills and the configured folders, which every workspace has,
// and of those in <home>/workspaces/<id>/skills, which only that workspace has.
func NewLibrary(home string, directories []string, log hclog.Logger) *Library {
	return &Library{home: home, more: directories, log: log, folders: map[string]map[string]file{}, unserved: map[string]string{}}
}

// Skills returns a workspace's skills by priority and name. If several have the same name, the workspace's own takes precedence
// over the one in <home>/skills, which takes precedence over those in configured folders.
func (l *Library) Skills(workspace string) []Skill {
	folders := slices.Compact(append([]string{l.Folder(workspace), filepath.Join(l.home, "skills")}, l.more...))
	l.mu.Lock()
	defer l.mu.Unlock()
	all, seen := []Skill{}, map[string]bool{}
	for _, folder := range folders {
		for _, s := range l.read(folder) {
			if !seen[s.Name] {
				seen[s.Name] = true
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Folder returns the folder with the skills that a workspace's people manage. For the default workspace, that is
// the folder of the whole instance.
func (l *Library) Folder(workspace string) string {
	if workspace == core.DefaultWorkspaceID {
		return filepath.Join(l.home, "skills")
	}
	return filepath.Join(l.home, "workspaces", workspace, "skills")
}

// read updates a folder and returns its skills in the order of their files.
func (l *Library) read(folder string) []Skill {
	before, now := l.folders[folder], map[string]file{}
	var skills []Skill
	for _, path := range markdown(folder) {
		info, err := os.Stat(filepath.Join(folder, path))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, known := before[path]
		if !known || f.size != info.Size() || !f.modified.Equal(info.ModTime()) {
			f = l.load(folder, path, info)
		}
		if now[path] = f; !f.broken {
			skills = append(skills, f.skill)
		}
	}
	l.folders[folder] = now
	return skills
}

func (l *Library) load(folder, path string, info fs.FileInfo) file {
	f := file{size: info.Size(), modified: info.ModTime(), broken: true}
	content, err := readFile(filepath.Join(folder, path))
	if err == nil {
		f.skill, err = Parse(content)
	}
	if err != nil {
		l.log.Warn("skill left out because its file is not a valid skill", "file", filepath.Join(folder, path), "error", err)
		return f
	}
	f.broken = false
	f.skill.Source, f.skill.file = filepath.ToSlash(filepath.Join(filepath.Base(folder), path)), filepath.Join(folder, path)
	return f
}

// markdown lists the files that may be skills: Markdown files in the folder itself, and SKILL.md in its subfolders.
func markdown(folder string) (paths []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // a missing folder has no skills
	}
	for _, e := range entries[:min(len(entries), maxFiles)] {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
		case strings.EqualFold(filepath.Ext(name), ".md") && !strings.EqualFold(name, "README.md"):
			paths = append(paths, name)
		case e.IsDir():
			paths = append(paths, filepath.Join(name, mainFile))
		}
	}
	return paths
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSkill {
		return make([]byte, maxSkill+1), nil // Parse reports the error
	}
	return os.ReadFile(path)
}
