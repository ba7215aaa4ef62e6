package skill

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/core"
)

// maxOwn is how many skills a workspace's folder may have for Put to add one. Everyone is the admin of a workspace, and
// each chat reads all skills of its workspace.
const maxOwn = 500

// Put writes a skill to a workspace's folder, replacing the skill with that name. The error is core.CodeBadRequest if
// the skill is invalid, and core.CodeLimitReached if the workspace has too many skills.
func (l *Library) Put(ctx context.Context, workspace string, s Skill) (Skill, error) {
	if !ValidName(s.Name) {
		return Skill{}, core.Errorf(core.CodeBadRequest, "name: must be at most 64 lower-case letters, digits and hyphens")
	}
	content, err := s.render()
	if err != nil {
		return Skill{}, err
	}
	kept, err := Parse(content)
	if err != nil {
		return Skill{}, core.Errorf(core.CodeBadRequest, "the skill %s: %w", s.Name, err)
	}
	if !l.hasRoom(workspace, s.Name) {
		return Skill{}, core.Errorf(core.CodeLimitReached, "the workspace has %d skills, which is the limit: delete one first", maxOwn)
	}
	if err := l.tell(ctx, workspace, s.Name, content); err != nil {
		return Skill{}, err
	}
	kept.Source, err = l.write(workspace, s.Name, content)
	return kept, err
}

// hasRoom reports whether a skill may be written to a workspace's folder.
func (l *Library) hasRoom(workspace, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder := l.Folder(workspace)
	l.read(folder)
	files := l.folders[folder]
	for _, f := range files {
		if !f.broken && f.skill.Name == name {
			return true
		}
	}
	return len(files) < maxOwn
}

// write writes the file of a skill, and returns its Source.
func (l *Library) write(workspace, name string, content []byte) (source string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder := l.Folder(workspace)
	path := l.path(folder, name)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o755); err != nil {
		return "", err
	}
	if err := renameio.WriteFile(filepath.Join(folder, path), content, 0o644); err != nil {
		return "", err
	}
	delete(l.folders, folder)
	return filepath.ToSlash(filepath.Join(filepath.Base(folder), path)), nil
}

// Delete removes a skill from a workspace. The error is core.CodeNotFound if the workspace's own folder has no such
// skill.
func (l *Library) Delete(ctx context.Context, workspace, name string) error {
	err := l.remove(workspace, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Errorf(core.CodeNotFound, "there is no skill %q in this workspace's own folder", name)
	case err != nil:
		return err
	}
	return l.tell(ctx, workspace, name, nil)
}

// remove removes the file of a skill. The error is fs.ErrNotExist if there is none.
func (l *Library) remove(workspace, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder := l.Folder(workspace)
	l.read(folder)
	err := os.Remove(filepath.Join(folder, l.path(folder, name)))
	delete(l.folders, folder)
	return err
}

// path returns the file of the skill with that name, or the file to which a new skill is written.
func (l *Library) path(folder, name string) string {
	l.read(folder)
	for path, f := range l.folders[folder] {
		if !f.broken && f.skill.Name == name {
			return path
		}
	}
	return filepath.Base(name) + ".md"
}

func (s Skill) render() ([]byte, error) {
	h := map[string]any{"name": s.Name, "description": s.Description, "type": s.Type, "priority": s.Priority}
	if len(s.AllowedTools) > 0 {
		h["allowed-tools"] = s.AllowedTools
	}
	meta := map[string]any{}
	if len(s.Triggers) > 0 {
		meta["triggers"] = asText(s.Triggers)
	}
	if len(s.Keywords) > 0 {
		meta["keywords"] = asText(s.Keywords)
	}
	if len(meta) > 0 {
		h["metadata"] = meta
	}
	front, err := yaml.Marshal(h)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte("---\n"), front, []byte("---\n\n"), []byte(s.Body), []byte("\n")}, nil), nil
}

// asText joins a list with commas, because the Agent Skills specification allows only text in metadata. A list with a
// comma in an item stays a list: chats read it, but MCP clients are not served such a skill.
func asText(list []string) any {
	if slices.ContainsFunc(list, func(item string) bool { return strings.Contains(item, ",") }) {
		return list
	}
	return strings.Join(list, ", ")
}
