package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/plugins"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// service is the plugin's side of ropewalk.plugin.v1.
type service struct {
	pluginv1.UnimplementedPluginServiceServer
	plugin plugins.Plugin
	ready  *atomic.Bool

	mu         sync.Mutex
	configured bool
}

func (s *service) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	info := s.plugin.Info()
	versions := make([]uint32, len(info.ProtocolVersions))
	for i, version := range info.ProtocolVersions {
		versions[i] = uint32(version)
	}
	return &pluginv1.InfoResponse{
		Name: info.Name, Version: info.Version, Kind: string(info.Kind), ProtocolVersions: versions, Capabilities: info.Capabilities,
	}, nil
}

func (s *service) Configure(ctx context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configured {
		return nil, fmt.Errorf("%w: the plugin has already been configured; start another process for other settings", plugins.ErrInvalid)
	}
	err := Configure(ctx, s.plugin.Impl, plugins.Config{
		JSON: json.RawMessage(req.GetSettingsJson()), DataDir: req.GetDataDir(), HostVersion: req.GetHostVersion(), HostCapabilities: req.GetHostCapabilities(),
	})
	problems, err := problemsOf(err)
	if err != nil {
		return nil, err
	}
	if len(problems) == 0 {
		s.configured = true
		s.ready.Store(true)
	}
	return &pluginv1.ConfigureResponse{Problems: problems}, nil
}

func (s *service) Validate(ctx context.Context, req *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	err := Validate(ctx, s.plugin.Impl, plugins.Config{
		JSON: json.RawMessage(req.GetSettingsJson()), DataDir: req.GetDataDir(), HostVersion: req.GetHostVersion(), HostCapabilities: req.GetHostCapabilities(),
	})
	problems, err := problemsOf(err)
	if err != nil {
		return nil, err
	}
	return &pluginv1.ValidateResponse{Problems: problems}, nil
}

// Configure passes settings to impl. An implementation without settings accepts only an empty object. A host also uses
// Configure for an implementation that runs in its own process.
func Configure(ctx context.Context, impl any, c plugins.Config) error {
	if configurer, ok := impl.(plugins.Configurer); ok {
		return configurer.Configure(ctx, c)
	}
	return c.Decode(&struct{}{})
}

// Validate checks settings for impl. The error is plugins.ErrUnimplemented if impl has settings but no way to check
// them.
func Validate(ctx context.Context, impl any, c plugins.Config) error {
	if validator, ok := impl.(plugins.Validator); ok {
		return validator.Validate(ctx, c)
	}
	if holder, ok := impl.(plugins.SettingsHolder); ok {
		return c.Decode(holder.NewSettings())
	}
	if _, ok := impl.(plugins.Configurer); ok {
		return fmt.Errorf("%w: this plugin checks its settings only when it applies them", plugins.ErrUnimplemented)
	}
	return c.Decode(&struct{}{})
}

// problemsOf splits the error of an implementation. Problems become part of the response, so that plugins and hosts in
// any language can use them. Other errors become a status.
func problemsOf(err error) ([]*pluginv1.Problem, error) {
	config, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok {
		return nil, err
	}
	problems := make([]*pluginv1.Problem, len(config.Problems))
	for i, p := range config.Problems {
		problems[i] = &pluginv1.Problem{Path: p.Path, Message: p.Message, Nearest: p.Nearest}
	}
	return problems, nil
}
