package skill

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Kept is where the skills that people write are kept for all servers of a deployment, by name.
// *store.Store is one.
type Kept interface {
	Settings(ctx context.Context, prefix string) (map[string]string, error)
	PutSetting(ctx context.Context, name, value string) error
}

// KeptPrefix begins the names under which skills are kept: a change of one is news for Sync.
const KeptPrefix = "skill/"

// Share has skills that are written or deleted here kept for other servers, too. Call it before the
// library is used.
func (l *Library) Share(kept Kept) { l.kept = kept }

// tell keeps a skill for the other servers; without content it is deleted there.
func (l *Library) tell(ctx context.Context, workspace, name string, content []byte) error {
	if l.kept == nil {
		return nil
	}
	return l.kept.PutSetting(ctx, KeptPrefix+workspace+"/"+name, string(content))
}

// Sync makes the files of the skills whose names are kept under a prefix, KeptPrefix for all, be as
// other servers have written or deleted them.
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
