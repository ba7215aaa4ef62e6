package server

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// drainTimeout is how long a replaced plugin may take to finish its last calls.
const drainTimeout = 15 * time.Second

// Reload reads the configuration again and applies what can be applied (config.Reload). Changed adapters are started and
// checked first; if one fails, nothing changes and the error says why. A reload does not fail requests or end sessions,
// and restarts only apps with changed sandbox settings.
func (s *Server) Reload(ctx context.Context) (control.Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	read, err := s.o.Load()
	var changes config.Changes
	if err == nil {
		changes, err = s.reload(ctx, read)
	}
	if err != nil {
		s.log.Error("configuration not reloaded", "error", err)
		return control.Reloaded{}, err
	}
	done := control.Reloaded{Changed: append([]string{}, changes.Applied...), Restart: append([]string{}, changes.Restart...)}
	s.log.Info("configuration reloaded", "changed", done.Changed, "needs_restart", done.Restart)
	return done, nil
}

// Plan returns what Reload would change. To find out which users the changed identity providers would recognize, it starts their
// adapters and stops them again.
func (s *Server) Plan(ctx context.Context) (control.Plan, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	read, err := s.o.Load()
	if err != nil {
		return control.Plan{}, err
	}
	next, changes := config.Reload(s.config(), read)
	plan := control.Plan{Reloaded: control.Reloaded{Changed: append([]string{}, changes.Applied...), Restart: append([]string{}, changes.Restart...)}}
	if !slices.Contains(changes.Applied, "auth") {
		return plan, nil
	}
	auth, err := s.adapters.auth.Prepare(ctx, next, authPlugins(next))
	if err != nil {
		return control.Plan{}, s.allProblems(ctx, read, err)
	}
	defer auth.Drop(ctx)
	if err := distinguish(ctx, next, auth.Next); err != nil {
		return control.Plan{}, err
	}
	users, err := s.store.Users(ctx)
	if err != nil {
		return control.Plan{}, err
	}
	people, err := access.Foresee(ctx, users, providersOf(next, auth.Next))
	plan.People = &people
	return plan, err
}

func (s *Server) reload(ctx context.Context, read *config.Config) (config.Changes, error) {
	next, changes := config.Reload(s.config(), read)
	x, err := s.adapters.prepare(ctx, next)
	if err != nil {
		return changes, s.allProblems(ctx, read, err)
	}
	for _, one := range x.sections {
		if one.part.Changes() && !slices.Contains(changes.Applied, one.name) { // same settings, different binary
			changes.Applied = append(changes.Applied, one.name)
		}
	}
	return changes, s.apply(ctx, next, x, changes.Applied)
}

// apply puts a configuration into effect. Steps that can fail come first. Replaced adapters are closed after their last
// calls.
func (s *Server) apply(ctx context.Context, next *config.Config, x *exchange, changed []string) error {
	var models *chat.Models
	var err error
	if slices.Contains(changed, "models") {
		models, err = chat.NewModels(next.Models)
	}
	if err == nil && x.store.Changes() { // UseStore writes the live sessions to the new store
		err = pluginhost.Located(next, next.SessionStore, s.endpoint.UseStore(ctx, x.store.Next[0].Handle.Store()))
	}
	if err != nil {
		x.drop(ctx)
		return err
	}
	x.apply()
	s.current.Store(next)
	if slices.Contains(changed, "auth") {
		for _, m := range x.auth.Started {
			s.follow(m.Handle)
		}
		s.access.SetProviders(providersOf(next, x.auth.Next), audiences(next, s.addr()))
		s.providers.changed()
		for _, m := range x.auth.Retired {
			s.unfollow(m.Handle)
		}
	}
	if slices.Contains(changed, "audit") {
		s.reconnectSinks(ctx)
	}
	if models != nil {
		s.chat.UseModels(models)
	}
	s.chat.SetQuestionTimeout(next.Chat.ElicitationTimeout)
	s.log.SetLevel(hclog.LevelFromString(next.Log.Level))
	s.http.LogRequests(next.Log.Access)
	if slices.Contains(changed, "views") {
		s.views.Declare(declaredViews(next))
	}
	s.apps.SetInstallPolicy(next.Install)
	s.apps.SetMaxAwake(next.MaxAwake)
	s.apps.Reconfigure(s.adapters.named(), next.Apps)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	x.retire(drain)
	return nil
}
