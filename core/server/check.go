package server

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Checked contains a check's findings other than problems.
type Checked struct {
	Unchecked []string        // sections whose adapter can check settings only by applying them
	Replaced  config.Problems // plugins whose file was replaced; a server starts its own copy of the accepted file
}

// Check has every configured adapter validate its settings, and starts nothing else. The error is a config.Problems
// with the location of each problem.
func Check(ctx context.Context, c *config.Config, builtins pluginhost.Builtins, log hclog.Logger) (found Checked, err error) {
	h := newHost(c, builtins, log)
	var all config.Problems
	for _, a := range pluginhost.AllConfigured(c) {
		if replaced := h.Replaced(a.Kind, a.Plugin); replaced != "" {
			found.Replaced = append(found.Replaced, c.Problem(a.At+".path", replaced))
		}
		err := h.Check(ctx, a.Kind, a.Plugin)
		if errors.Is(err, plugins.ErrUnimplemented) {
			found.Unchecked = append(found.Unchecked, a.At)
			continue
		}
		if problems, ok := errors.AsType[config.Problems](pluginhost.Located(c, a.Plugin, err)); ok {
			all = append(all, problems...)
		}
	}
	if len(all) > 0 {
		return found, all
	}
	return found, nil
}

// SearchRegistry starts a configured registry and searches it once. The adapter must be a built-in one: starting a
// plugin from the home may remove files that a running server needs.
func SearchRegistry(ctx context.Context, c *config.Config, builtins pluginhost.Builtins, r config.Plugin) error {
	reg, err := newHost(c, builtins, hclog.NewNullLogger()).Registry(ctx, r)
	if err != nil {
		return err
	}
	defer reg.Close(context.WithoutCancel(ctx))
	_, err = reg.Search(ctx, registry.Query{Limit: 1})
	return err
}

func newHost(c *config.Config, builtins pluginhost.Builtins, log hclog.Logger) *pluginhost.Host {
	return pluginhost.New(hostOptions(c, builtins, log))
}

// hostOptions returns the configured settings that apply to all plugins.
func hostOptions(c *config.Config, builtins pluginhost.Builtins, log hclog.Logger) pluginhost.Options {
	return pluginhost.Options{
		Home: c.Home, Builtins: builtins, Logger: log, Env: c.Environment, PassEnv: c.Plugins.PassEnv, Limits: c.Plugins.Limits,
		StartTimeout: c.Plugins.StartTimeout, CallTimeout: c.Plugins.CallTimeout,
		RequireSignature: c.Plugins.RequireSignature, TrustedKeys: c.Plugins.TrustedKeys,
	}
}

// allProblems adds the problems of all other adapters to the error of the first adapter that did not
// start, so that an operator sees all of them at once.
func (s *Server) allProblems(ctx context.Context, c *config.Config, err error) error {
	first, ok := errors.AsType[config.Problems](err)
	if !ok {
		return err
	}
	_, others := Check(ctx, c, s.o.Builtins, hclog.NewNullLogger())
	all, _ := errors.AsType[config.Problems](others)
	for _, p := range first {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
