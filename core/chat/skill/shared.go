package skill

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Kept stores the skills that people write for all servers of a deployment, by name. *store.Store implements it.
type Kept interface {
	Settings(ctx context.Context, prefix string) (map[string]string, error)
	PutSetting(ctx context.Context, name, value string) error
}

// KeptPrefix is the prefix of the names under which skills are stored. When such a setting changes, call Sync.
const KeptPrefix = "skill/"

// Share makes the library also store written and deleted skills for other servers. Call it before the library is
// used.
func (l *Library) Share(kept Kept) { l.kept = kept }

// tell stores a skill for the other servers. Empty content deletes it there.
func (l *Library) tell(ctx context.Context, workspace, name string, content []byte) error {
	if l.kept == nil {
		return nil
	}
	return l.kept.PutSetting(ctx, KeptPrefix+workspace+"/"+name, string(content))
}

// Sync updates the files of the skills stored under a prefix to what other servers have written or deleted. Use
// KeptPrefix for all skills.
func (l *Library) Sync(ctx context.Context, prefix string) error {
	all, err := l.kept.Settings(ctx, prefix)
	if err != nil {
		return err
	}
	var failures []error
	for key, content := range all {
		workspace, name, _ := strings.Cut(strings.TrimPrefix(key, KeptPrefix), "/")
		if !core.ValidWorkspaceID(workspace) || !ValidName(name) {
			continue
		}
		if content == "" {
			err = l.remove(workspace, name)
		} else {
			_, err = l.write(workspace, name, []byte(content))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
