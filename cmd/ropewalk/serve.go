package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/sample"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/footprint"
	"github.com/ropewalk/ropewalk/core/logging"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/server"
)

// shutdownTimeout is how long pending work may take to finish after SIGTERM and http.shutdownDelaySeconds.
const shutdownTimeout = 25 * time.Second

// sampleTimeout is how long the hints wait for the sample app.
const sampleTimeout = 10 * time.Second

func serveCommand() *cobra.Command {
	var s settings
	var withSample bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Start the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &s, withSample) },
	}
	s.bind(cmd)
	s.bindListener(cmd)
	cmd.Flags().BoolVar(&withSample, "sample", false, "install the sample app, and print how to use the server")
	return cmd
}

// upCommand returns `ropewalk up`, the command that a new user starts with.
func upCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "up", Short: "Start the server with a sample app, and print how to use it", Args: cobra.NoArgs,
		Long: "Start the server with a sample app, and print how to call a tool and connect a client. It is the same " +
			"as `serve --sample`, and needs no configuration. Ctrl-C stops it.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &s, true) },
	}
	s.bind(cmd)
	s.bindListener(cmd)
	return cmd
}

func serve(cmd *cobra.Command, s *settings, withSample bool) error {
	load := func() (*config.Config, error) {
		c, err := s.load(cmd)
		if err == nil {
			err = config.CheckHome(c.Home) // before an adapter or the sample app uses it
		}
		if err == nil && withSample {
			c, err = addSample(c)
		}
		return c, err
	}
	hangup := make(chan os.Signal, 1) // SIGHUP must not end the process, not even during start or shutdown
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, err := load()
	if err != nil {
		return err
	}
	log, levels := newLogger(c.Log, os.Stderr)
	footprint.Pace(c.Environment["GOGC"])
	memory := footprint.Limit(c.Environment["GOMEMLIMIT"])
	if err := process.Protect(); err != nil {
		log.Warn("other processes of this user may read the server's memory", "error", err)
	}
	process.Adopt() // so that children of a killed shim are killed as well
	if n := process.EndLeftovers(); n > 0 {
		log.Warn("processes of apps that an earlier server left behind were ended", "processes", n)
	}
	if err := process.ShimError(); err != nil {
		log.Warn("each app's shim is the whole executable and needs more memory: the small program inside it cannot be executed", "error", err)
	}
	srv, err := server.Start(cmd.Context(), server.Options{Config: c, Load: load, Builtins: builtins(), Version: version, Commit: buildInfo().Commit, Logger: log, LogLevels: levels, BodyBudget: footprint.InFlight(memory)})
	if err != nil {
		return config.ExplainHome(c.Home, err)
	}
	go footprint.Keep(cmd.Context())
	log.Info("server listening", "url", srv.URL(), "workspace", srv.WorkspaceID(), "home", c.Home, "version", version)
	if withSample {
		ctx, cancel := context.WithTimeout(cmd.Context(), sampleTimeout)
		if !srv.AppRuns(ctx, "sample") {
			log.Warn("the sample app is not running; see `ropewalk app show sample`")
		}
		cancel()
		if err := printHints(cmd.OutOrStdout(), cmp.Or(c.HTTP.BaseURL, srv.Status().URL), srv.WorkspaceID(), c); err != nil {
			log.Warn("the hints could not be printed", "error", err)
		}
	}
	err = wait(cmd.Context(), srv, hangup)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), c.HTTP.ShutdownDelay+shutdownTimeout)
	defer cancel()
	log.Info("server shutting down")
	if closeErr := srv.Close(ctx); closeErr != nil {
		log.Warn("shutdown was not clean", "error", closeErr)
	}
	return err
}

// wait returns when ctx ends or the listener fails. A hangup signal reloads the configuration.
func wait(ctx context.Context, srv *server.Server, hangup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-srv.Failed():
			return fmt.Errorf("listener: %w", err)
		case <-hangup:
			_, _ = srv.Reload(ctx) // the server logs the result
		}
	}
}

// addSample declares the sample app, unless the configuration has an app with that name.
func addSample(c *config.Config) (*config.Config, error) {
	if _, taken := c.Apps["sample"]; taken {
		return c, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Home, "sample")
	if err := sample.WriteBundle(dir, exe, "sample", version); err != nil {
		return nil, config.ExplainHome(c.Home, fmt.Errorf("write the sample app: %w", err))
	}
	with := *c
	with.Apps = map[string]config.App{"sample": {Source: core.Source{Kind: core.SourcePath, Ref: dir}}}
	for name, app := range c.Apps {
		with.Apps[name] = app
	}
	return &with, nil
}

// newLogger returns the server's logger for the configuration, and its levels.
func newLogger(c config.Log, w io.Writer) (hclog.Logger, *logging.Levels) {
	levels := logging.NewLevels(hclog.LevelFromString(c.Level))
	return logging.New(logging.Options{Levels: levels, JSON: c.Format == "json"}, w), levels
}
