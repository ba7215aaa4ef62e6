package protocoltest

import (
	"context"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// sharesBackend are promises about two processes with the same settings and directory.
func sharesBackend() []Check {
	const free = `The backend of a plugin with "exclusive" is free again when its process has ended, also by kill -9`
	return []Check{
		{
			Name: "a process can be configured while another one serves, unless the plugin is exclusive", Run: configuresBeside,
			Contract: `A process of a plugin without "exclusive" can be configured while another one serves with the same settings and data_dir`,
		},
		{Name: "an exclusive plugin frees its backend when Shutdown ends it", Contract: free, Run: freesBackend(shutDown)},
		{Name: "an exclusive plugin frees its backend when kill -9 ends it", Contract: free, Run: freesBackend(killNow)},
	}
}

func configuresBeside(ctx context.Context, s Subject) error {
	return inOneDirectory(ctx, s, func(first *process, exclusive bool) error {
		if exclusive {
			return kit.Skip(`the plugin has the capability "exclusive"`)
		}
		return s.configuredIn(ctx, first.data, func(*process) error { return callKind(ctx, s, first) })
	})
}

func freesBackend(end func(context.Context, *process) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		return inOneDirectory(ctx, s, func(first *process, exclusive bool) error {
			if !exclusive {
				return kit.Skip(`the plugin has not the capability "exclusive"`)
			}
			if err := end(ctx, first); err != nil {
				return err
			}
			if err := s.configuredIn(ctx, first.data, func(next *process) error { return callKind(ctx, s, next) }); err != nil {
				return kit.Failf("after the process had ended, the next one cannot have its backend: %w", err)
			}
			return nil
		})
	}
}

// inOneDirectory configures a first process in a directory that outlives it.
func inOneDirectory(ctx context.Context, s Subject, look func(first *process, exclusive bool) error) error {
	data, err := os.MkdirTemp("", "ropewalk-kit-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	return s.configuredIn(ctx, data, func(first *process) error {
		service, err := first.service()
		if err != nil {
			return err
		}
		info, err := service.Info(ctx, &pluginv1.InfoRequest{})
		if err != nil {
			return kit.Failf("Info failed: %w", err)
		}
		return look(first, slices.Contains(info.GetPowers(), plugins.CapabilityExclusive))
	})
}

// configuredIn starts a process and configures it with a directory.
func (s Subject) configuredIn(ctx context.Context, data string, look func(*process) error) error {
	p, err := s.start(ctx, "1")
	if err != nil {
		return err
	}
	defer p.stop()
	p.data = data
	service, err := p.service()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	problems, err := configure(limited, service, p, s.Settings)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return kit.Failf("Configure reports problems with good settings: %v", problems)
	}
	return look(p)
}

func shutDown(ctx context.Context, p *process) error {
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = conn.Invoke(short, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may be gone before it answers
	_, _ = p.exits(patience)                                                                      // another check judges how it ends
	return nil
}

func killNow(_ context.Context, p *process) error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_, _ = p.exits(patience)
	return nil
}
