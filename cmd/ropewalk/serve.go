package main

import (
	"context"
	"fmt"
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
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/server"
)

// shutdownTimeout is how long the work in flight may take to finish after SIGTERM.
const shutdownTimeout = 25 * time.Second

// samplePatience is how long a newcomer waits to be told how to call the sample app, if it does
// not start.
const samplePatience = 10 * time.Second

func serveCommand() *cobra.Command {
	var s settings
	var withSample bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Start the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &s, withSample) },
	}
	s.bind(cmd)
	s.bindListener(cmd)
	cmd.Flags().BoolVar(&withSample, "sample", false, "have the sample app installed, and print how to call it")
	return cmd
}

func serve(cmd *cobra.Command, s *settings, withSample bool) error {
	load := func() (*config.Config, error) {
		c, err := s.load(cmd)
		if err == nil && withSample {
			c, err = addSample(c)
		}
		return c, err
	}
	hangup := make(chan os.Signal, 1) // from here on SIGHUP ends nothing, also while the server starts and ends
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, err := load()
	if err != nil {
		return err
	}
	log := hclog.New(&hclog.LoggerOptions{
		Name: "ropewalk", Level: hclog.LevelFromString(c.Log.Level), JSONFormat: c.Log.Format == "json", Output: os.Stderr,
	})
	footprint.Pace(c.Environment["GOGC"])
	process.Adopt() // what a killed shim leaves behind is ended, too
	srv, err := server.Start(cmd.Context(), server.Options{Config: c, Load: load, Builtins: builtins(), Version: version, Logger: log})
	if err != nil {
		return err
	}
	go footprint.Keep(cmd.Context())
	log.Info("The server answers", "url", srv.URL(), "workspace", srv.WorkspaceID(), "home", c.Home, "version", version)
	if withSample {
		ctx, cancel := context.WithTimeout(cmd.Context(), samplePatience)
		if !srv.AppRuns(ctx, "sample") {
			log.Warn("The sample app does not run; GET /v1/apps says how it is.")
		}
		cancel()
		printSample(cmd.OutOrStdout(), srv.URL(), srv.WorkspaceID(), c.APIKey != "")
	}
	err = wait(cmd.Context(), srv, hangup)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), shutdownTimeout)
	defer cancel()
	log.Info("The server ends; work in flight is finished first.")
	if closeErr := srv.Close(ctx); closeErr != nil {
		log.Warn("Not everything ended in order", "error", closeErr)
	}
	return err
}

// wait returns when the server is told to end or its listener breaks. A hangup reloads.
func wait(ctx context.Context, srv *server.Server, hangup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-srv.Failed():
			return fmt.Errorf("the listener broke: %w", err)
		case <-hangup:
			_, _ = srv.Reload(ctx) // the log says how it went
		}
	}
}

// addSample declares the sample app, unless the configuration has one of that name.
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
		return nil, fmt.Errorf("write the sample app: %w", err)
	}
	with := *c
	with.Apps = map[string]config.App{"sample": {Source: core.Source{Kind: core.SourcePath, Ref: dir}}}
	for name, app := range c.Apps {
		with.Apps[name] = app
	}
	return &with, nil
}
