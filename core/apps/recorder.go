package apps

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// recorder is an instance that records its lists as they are read. A list that the instance does not implement is
// recorded as empty.
type recorder struct {
	instance.Instance
	files string // the result of app.filesSum before the instance started
	mu    sync.Mutex
	lists map[core.Kind][]json.RawMessage
}

func newRecorder(in instance.Instance, files string) *recorder {
	return &recorder{Instance: in, files: files, lists: map[core.Kind][]json.RawMessage{}}
}

// again returns a recorder for reading in's lists again. It starts with the lists of r.
func (r *recorder) again(in instance.Instance) *recorder {
	next := newRecorder(in, "")
	if r != nil {
		next.files = r.files
		r.mu.Lock()
		defer r.mu.Unlock()
		maps.Copy(next.lists, r.lists)
	}
	return next
}

// List implements instance.Instance.
func (r *recorder) List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error) {
	list, err := r.Instance.List(ctx, kind)
	refused, ok := errors.AsType[*rpc.Error](err)
	if err == nil || ok && refused.Code == rpc.CodeMethodNotFound {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lists[kind] = list
	}
	return list, err
}

// kept returns the recorded lists, and whether all of them were read.
func (r *recorder) kept() (k keptLists, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.Lists = make(map[core.Kind][][]byte, len(r.lists))
	for kind, list := range r.lists {
		raws := make([][]byte, len(list))
		for i, raw := range list {
			raws[i] = raw
		}
		k.Lists[kind] = raws
	}
	const kinds = 4
	return k, len(r.lists) == kinds
}
