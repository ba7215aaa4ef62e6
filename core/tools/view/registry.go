package view

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Declared is a view from the configuration.
type Declared struct {
	*View
	Workspaces []string // workspaces that have the view; empty means all
}

func (d Declared) isIn(workspace string) bool {
	return len(d.Workspaces) == 0 || slices.Contains(d.Workspaces, workspace)
}

// Store stores the views that workspace admins set. *store.Store implements it.
type Store interface {
	Views(ctx context.Context) (map[string][]core.View, error) // by workspace
	PutView(ctx context.Context, workspace string, v core.View) error
	DeleteView(ctx context.Context, workspace, name string) error
}

// Registry holds the views of all workspaces. It is safe for concurrent use.
type Registry struct {
	store Store
	log   hclog.Logger

	mu      sync.Mutex // held while the views change
	current atomic.Pointer[state]

	watching sync.Mutex
	watchers map[*func(workspace string)]struct{}
}

// state is an immutable snapshot of all views, with a cache of sets.
type state struct {
	declared []Declared
	stored   map[string]map[string]*View // by workspace and name
	roles    bool                        // a view is bound to a role
	groups   map[string]struct{}         // the groups that views are bound to
	sets     *sync.Map                   // setKey to *Set
}

// setKey is everything that determines which views apply to a caller.
type setKey struct {
	workspace    string
	role         core.Role
	groups       string // the caller's groups that a view is bound to, one per line
	key, address string // the views named by the API key and by the address
}

// NewRegistry returns a Registry with the views of the store and the declared ones.
func NewRegistry(ctx context.Context, store Store, declared []Declared, log hclog.Logger) (*Registry, error) {
	r := &Registry{store: store, log: log, watchers: map[*func(string)]struct{}{}}
	r.current.Store(newState(declared, nil))
	return r, r.Reload(ctx)
}

func newState(declared []Declared, stored map[string]map[string]*View) *state {
	s := &state{declared: declared, stored: stored, groups: map[string]struct{}{}, sets: &sync.Map{}}
	for _, d := range declared {
		s.bind(d.View)
	}
	for _, views := range stored {
		for _, v := range views {
			s.bind(v)
		}
	}
	return s
}

func (s *state) bind(v *View) {
	s.roles = s.roles || len(v.Roles) > 0
	for _, name := range v.Groups {
		s.groups[name] = struct{}{}
	}
}

// boundGroups returns the groups of a user (core.User.Groups) that a view is bound to.
func (s *state) boundGroups(groups string) string {
	if groups == "" || len(s.groups) == 0 {
		return ""
	}
	return strings.Join(slices.DeleteFunc(strings.Split(groups, "\n"), func(name string) bool {
		_, bound := s.groups[name]
		return !bound
	}), "\n")
}

// Reload reads the views of the store again, for example after a peer server has changed some. If that fails, the
// current views remain in force.
func (r *Registry) Reload(ctx context.Context) error {
	r.mu.Lock()
	all, err := r.store.Views(ctx)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	stored := map[string]map[string]*View{}
	for workspace, list := range all {
		stored[workspace] = map[string]*View{}
		for _, d := range list {
			v, err := New(d)
			if err != nil { // another version of the server wrote it; callers who are bound to this view see nothing
				r.log.Error("a stored view is not valid and shows nothing", "workspace", workspace, "view", d.Name, "error", err)
				v = &View{View: d, invalid: true}
			}
			stored[workspace][d.Name] = v
		}
	}
	r.current.Store(newState(r.current.Load().declared, stored))
	r.mu.Unlock()
	r.changed("")
	return nil
}

// Declare replaces the views of the configuration.
func (r *Registry) Declare(declared []Declared) {
	r.mu.Lock()
	r.current.Store(newState(declared, r.current.Load().stored))
	r.mu.Unlock()
	r.changed("")
}

// Watch calls changed, which must not block, after views of a workspace have changed; "" means all workspaces.
func (r *Registry) Watch(changed func(workspace string)) (stop func()) {
	r.watching.Lock()
	defer r.watching.Unlock()
	r.watchers[&changed] = struct{}{}
	return func() {
		r.watching.Lock()
		defer r.watching.Unlock()
		delete(r.watchers, &changed)
	}
}

func (r *Registry) changed(workspace string) {
	r.watching.Lock()
	all := slices.Collect(maps.Keys(r.watchers))
	r.watching.Unlock()
	for _, changed := range all {
		(*changed)(workspace)
	}
}

// Of returns the views that apply to a caller: those bound to the caller's role and groups, the API key's, and the
// address's. It returns nil for a caller who sees everything. A view that does not exist shows nothing.
func (r *Registry) Of(c core.Caller) *Set {
	now := r.current.Load()
	groups := now.boundGroups(c.User.Groups)
	if !now.roles && groups == "" && c.Scope.View == "" && c.View == "" {
		return nil
	}
	k := setKey{c.Workspace.ID, c.Workspace.Role, groups, c.Scope.View, c.View}
	if set, ok := now.sets.Load(k); ok {
		return set.(*Set) //nolint:forcetypeassert // nothing else is stored
	}
	set, _ := now.sets.LoadOrStore(k, now.newSet(k))
	return set.(*Set) //nolint:forcetypeassert // nothing else is stored
}

func (s *state) newSet(k setKey) *Set {
	set, groups := &Set{}, strings.Split(k.groups, "\n")
	for _, v := range s.of(k.workspace) {
		isMember := func(group string) bool { return slices.Contains(groups, group) }
		if !slices.Contains(v.Roles, k.role) && !slices.ContainsFunc(v.Groups, isMember) {
			continue
		}
		if v.invalid {
			return &Set{none: true}
		}
		set.views = append(set.views, v.View)
	}
	for _, name := range []string{k.key, k.address} {
		if name == "" {
			continue
		}
		v := s.find(k.workspace, name)
		if v == nil || v.invalid {
			return &Set{none: true}
		}
		set.views = append(set.views, v)
	}
	if len(set.views) == 0 {
		return nil
	}
	return set
}

type workspaceView struct {
	*View
	declared bool
}

// of returns the views of a workspace, sorted by name.
func (s *state) of(workspace string) (all []workspaceView) {
	for _, d := range s.declared {
		if d.isIn(workspace) {
			all = append(all, workspaceView{d.View, true})
		}
	}
	for name, v := range s.stored[workspace] {
		if s.declaration(workspace, name) == nil {
			all = append(all, workspaceView{v, false})
		}
	}
	slices.SortFunc(all, func(a, b workspaceView) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// find returns a view of a workspace, or nil if the workspace has no view with that name.
func (s *state) find(workspace, name string) *View {
	if d := s.declaration(workspace, name); d != nil {
		return d
	}
	return s.stored[workspace][name]
}

func (s *state) declaration(workspace, name string) *View {
	for _, d := range s.declared {
		if d.Name == name && d.isIn(workspace) {
			return d.View
		}
	}
	return nil
}

// Has reports whether a workspace has a view with that name.
func (r *Registry) Has(workspace, name string) bool {
	return r.current.Load().find(workspace, name) != nil
}

// Info is a view as listed for its workspace.
type Info struct {
	core.View
	Declared bool `json:"declared"` // declared in the configuration, and can only be changed there
}

// List returns the views of a workspace, sorted by name.
func (r *Registry) List(workspace string) []Info {
	all := []Info{}
	for _, v := range r.current.Load().of(workspace) {
		all = append(all, newInfo(v.View, v.declared))
	}
	return all
}

// newInfo replaces nil lists and maps with empty ones, so that clients do not receive null.
func newInfo(v *View, declared bool) Info {
	i := Info{View: v.View, Declared: declared}
	i.Roles, i.Groups = append([]core.Role{}, i.Roles...), append([]string{}, i.Groups...)
	i.Include, i.Exclude = append([]core.ToolRule{}, i.Include...), append([]core.ToolRule{}, i.Exclude...)
	if i.Tools == nil {
		i.Tools = map[string]core.Relabel{}
	}
	return i
}

// Set creates or replaces a view of a workspace. The error is core.CodeBadRequest for an invalid definition,
// core.CodeConflict if the view is declared in the configuration, and core.CodeLimitReached if the workspace has too
// many views.
func (r *Registry) Set(ctx context.Context, workspace string, d core.View) (Info, error) {
	v, err := New(d)
	if err != nil {
		return Info{}, err
	}
	if err := r.change(workspace, v.Name, func() error { return r.store.PutView(ctx, workspace, v.View) }, v); err != nil {
		return Info{}, err
	}
	return newInfo(v, false), nil
}

// Remove deletes a view of a workspace. The error is core.CodeNotFound if there is no such view, and core.CodeConflict
// if the view is declared in the configuration. API keys that are bound to it see nothing until a view with that name
// is set again.
func (r *Registry) Remove(ctx context.Context, workspace, name string) error {
	return r.change(workspace, name, func() error { return r.store.DeleteView(ctx, workspace, name) }, nil)
}

// change writes a change to the store and then applies it. v is nil for a view that is deleted.
func (r *Registry) change(workspace, name string, write func() error, v *View) error {
	r.mu.Lock()
	now := r.current.Load()
	if now.declaration(workspace, name) != nil {
		r.mu.Unlock()
		return core.Errorf(core.CodeConflict, "the configuration declares the view %q (views.%s); change it there", name, name)
	}
	if err := write(); err != nil {
		r.mu.Unlock()
		return err
	}
	stored := maps.Clone(now.stored)
	views := maps.Clone(stored[workspace])
	if views == nil {
		views = map[string]*View{}
	}
	if views[name] = v; v == nil {
		delete(views, name)
	}
	stored[workspace] = views
	r.current.Store(newState(now.declared, stored))
	r.mu.Unlock()
	r.changed(workspace)
	return nil
}
