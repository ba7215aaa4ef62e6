package server

import (
	"context"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

// drainTimeout is how long a replaced plugin may take to finish its last calls.
const drainTimeout = 15 * time.Second

// needsRestart reports the sections that a reload cannot apply. Authentication cannot be turned on or
// off: dev mode decides how the listener checks requests.
func needsRestart(section string, before, next *config.Config) bool {
	switch section {
	case "audit":
		return auditRestarts(before.Audit, next.Audit)
	case "home", "http", "apiKey", "limits", "mcp", "plugins", "sandbox", "skills", "storage", "tools":
		return true
	case "auth":
		return before.Dev() != next.Dev()
	}
	return false
}

// replacement is what a reload has started and not yet applied.
type replacement struct {
	auth       []namedAuth // all that are to run, the unchanged ones too
	startAuth  []namedAuth // of those, the ones that were started
	store      *pluginhost.SessionStore
	registries []namedRegistry
	sinks      []namedSink // all that are to run, the unchanged ones too
	keptSinks  []namedSink // of those, the unchanged ones
	startSinks []namedSink // and the others
	models     *chat.Models

	newAuth, newStore, newRegistries, newSinks bool
}

func (x *replacement) drop(ctx context.Context) {
	closeRegistries(ctx, x.registries)
	if x.store != nil {
		x.store.Close(ctx)
	}
	closeAuth(ctx, x.startAuth)
	closeSinks(ctx, x.startSinks)
}

// Reload reads the configuration again and applies it. Changed adapters are started and checked
// first; when one fails, nothing changes and the error says why. A reload fails no request, ends no
// session and restarts no app.
func (s *Server) Reload(ctx context.Context) (control.Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next, err := s.o.Load()
	if err != nil {
		s.log.Error("configuration not reloaded", "error", err)
		return control.Reloaded{}, err
	}
	diff := config.Diff(s.config, next)
	x, err := s.prepare(ctx, next, diff)
	if err == nil {
		err = s.apply(ctx, next, x)
	} else {
		err = s.allProblems(ctx, next, err)
	}
	if err != nil {
		s.log.Error("configuration not reloaded", "error", err)
		return control.Reloaded{}, err
	}
	done := control.Reloaded{Changed: []string{}, Restart: []string{}}
	for _, section := range diff {
		if needsRestart(section, s.config, next) {
			done.Restart = append(done.Restart, section)
		} else {
			done.Changed = append(done.Changed, section)
		}
	}
	for section, replaced := range map[string]bool{"auth": x.newAuth, "sessionStore": x.newStore, "registries": x.newRegistries, "audit": x.newSinks} {
		if replaced && !slices.Contains(done.Changed, section) { // the same settings, another binary
			done.Changed = append(done.Changed, section)
		}
	}
	s.config = effective(s.config, next)
	s.log.Info("configuration reloaded", "changed", done.Changed, "needs_restart", done.Restart)
	return done, nil
}

// effective returns next with the sections of before that only a restart changes, so that the next
// reload still reports them.
func effective(before, next *config.Config) *config.Config {
	c := *next
	c.Home, c.HTTP, c.AllowedOrigins, c.APIKey = before.Home, before.HTTP, before.AllowedOrigins, before.APIKey
	c.MCP, c.Plugins, c.Skills, c.Storage, c.Limits = before.MCP, before.Plugins, before.Skills, before.Storage, before.Limits
	c.Sandbox, c.Tools = before.Sandbox, before.Tools
	if needsRestart("audit", before, next) {
		c.Audit = before.Audit
	}
	if needsRestart("auth", before, next) {
		c.Auth = before.Auth
	}
	return &c
}

// prepare starts the adapters that changed, all or nothing.
func (s *Server) prepare(ctx context.Context, next *config.Config, diff []string) (_ *replacement, err error) {
	x := &replacement{}
	defer func() {
		if err != nil {
			x.drop(ctx)
		}
	}()
	a := s.adapters
	kept, err := a.currentAuth(next)
	if err != nil {
		return x, err
	}
	x.newAuth = !needsRestart("auth", s.config, next) && (slices.Contains(diff, "auth") || len(kept) < len(a.auth))
	if x.newStore = slices.Contains(diff, "sessionStore"); !x.newStore {
		if x.newStore, err = a.store.Outdated(); err != nil {
			return x, located(next, next.SessionStore, err)
		}
	}
	if err := s.prepareSinks(next, x, slices.Contains(diff, "audit")); err != nil {
		return x, err
	}
	x.newRegistries = slices.Contains(diff, "registries")
	for i, r := range *a.named.Load() {
		if x.newRegistries {
			break
		}
		if x.newRegistries, err = r.handle.Outdated(); err != nil {
			return x, located(next, next.Registries[i].Plugin, err)
		}
	}
	if slices.Contains(diff, "models") {
		if x.models, err = chat.NewModels(next.Models); err != nil {
			return x, err
		}
	}
	return x, s.start(ctx, next, kept, x)
}

// start starts the adapters of a reload. The session store comes last: one whose backend has one writer
// takes over from the present one as soon as it is started.
func (s *Server) start(ctx context.Context, next *config.Config, kept []namedAuth, x *replacement) (err error) {
	a := s.adapters
	if x.newAuth {
		if x.auth, err = openAuth(ctx, s.host, next, kept, a.auth); err != nil {
			return err
		}
		x.startAuth = without(x.auth, kept)
	}
	if x.newRegistries {
		if x.registries, err = openRegistries(ctx, s.host, next, *a.named.Load()); err != nil {
			return err
		}
	}
	if x.newSinks {
		if x.sinks, err = openSinks(ctx, s.host, next, x.keptSinks, a.sinks); err != nil {
			return err
		}
		x.startSinks = otherSinks(x.sinks, x.keptSinks)
	}
	if x.newStore {
		x.store, err = openStore(ctx, s.host, next, a.store)
	}
	return err
}

// apply replaces the adapters. The only step that can fail, writing the live sessions to the new
// store, comes first. Replaced adapters are closed after their last calls.
func (s *Server) apply(ctx context.Context, next *config.Config, x *replacement) error {
	a, retired := s.adapters, &replacement{}
	if x.newStore {
		if err := s.endpoint.UseStore(ctx, x.store.Store()); err != nil {
			x.drop(ctx)
			return located(next, next.SessionStore, err)
		}
		retired.store, a.store = a.store, x.store
	}
	if x.newAuth {
		retired.startAuth = s.replaceAuth(next, x)
	}
	if x.newSinks {
		retired.startSinks = s.replaceSinks(ctx, x.sinks)
	}
	if x.newRegistries {
		retired.registries = *a.named.Swap(&x.registries)
	}
	if x.models != nil {
		s.chat.UseModels(x.models)
	}
	s.chat.SetQuestionTimeout(next.Chat.ElicitationTimeout)
	s.features.now.Store(&next.Features)
	s.log.SetLevel(hclog.LevelFromString(next.Log.Level))
	s.apps.SetInstallPolicy(next.Install)
	s.apps.Reconfigure(a.registries(), next.Apps)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	retired.drop(drain)
	return nil
}

// Plugins returns the state of the plugins.
func (s *Server) Plugins() []control.Plugin {
	all := []control.Plugin{}
	for _, p := range s.host.Status() {
		one := control.Plugin{
			Kind: string(p.Kind), Name: p.Name, Adapter: p.Adapter, Path: p.Path, Version: p.Version,
			State: p.State, PID: p.PID, Since: p.Since, Restarts: p.Restarts,
			Protocol: p.Protocol, SHA256: p.SHA256, Degraded: p.Degraded, Calls: p.Calls, Errors: p.Failures,
			P50: p.P50.Seconds(), P99: p.P99.Seconds(), Memory: p.Memory,
		}
		if p.LastErr != nil {
			one.LastErr = p.LastErr.Error()
		}
		all = append(all, one)
	}
	return all
}

// Attach makes the calls of a plugin on a process that somebody else started.
func (s *Server) Attach(ctx context.Context, a control.Attach, attached func(control.Attached)) error {
	return s.host.Attach(ctx, plugins.Kind(a.Kind), a.Name, a.Socket, func(info plugins.Info) {
		attached(control.Attached{Name: info.Name, Version: info.Version})
	})
}

// Apps returns the apps of all workspaces, by workspace and name.
func (s *Server) Apps() []control.App {
	list := []control.App{}
	all := s.apps.All()
	for _, workspace := range slices.Sorted(maps.Keys(all)) {
		for _, a := range all[workspace] {
			list = append(list, control.App{Workspace: workspace, Name: a.Name, Version: a.Version, Status: string(a.Status), LastErr: a.LastError})
		}
	}
	return list
}

// Status describes the server to the commands of its operator.
func (s *Server) Status() control.Status {
	return control.Status{
		URL: localURL(s.addr()), Workspace: s.WorkspaceID(), Version: s.version, PID: os.Getpid(), Dev: s.o.Config.Dev(),
		SearchPath: s.o.Config.Environment["PATH"], Config: s.configFile(), Sandbox: s.sandbox,
	}
}

// localURL is an address that works on this machine: that of a listener on all addresses is not one.
func localURL(a *net.TCPAddr) string {
	ip := a.IP
	switch {
	case !ip.IsUnspecified():
	case ip.To4() != nil:
		ip = net.IPv4(127, 0, 0, 1)
	default:
		ip = net.IPv6loopback
	}
	return "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(a.Port))
}
