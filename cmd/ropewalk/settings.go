package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

// settings determines where a command finds its configuration, through the flags shared by every command that reads
// one.
type settings struct {
	file string
	home string
	host string
	port int
}

func (s *settings) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "config", "", "configuration file (default <home>/ropewalk.yaml)")
	cmd.Flags().StringVar(&s.home, "home", "", "service home (default ROPEWALK_HOME, else ~/.ropewalk)")
}

func (s *settings) bindListener(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.host, "host", "", "name or address to listen on (default http.host, else 127.0.0.1)")
	cmd.Flags().IntVar(&s.port, "port", 0, "port to listen on (default http.port, else 27247)")
}

// load reads the configuration. Its error lists everything that is wrong.
func (s *settings) load(cmd *cobra.Command) (*config.Config, error) {
	return config.Load(s.options(cmd))
}

// inspect reads the configuration for display. Values from environment variables that are set only for the server are
// unset.
func (s *settings) inspect(cmd *cobra.Command) (c *config.Config, unset config.Problems, err error) {
	return config.Inspect(s.options(cmd))
}

func (s *settings) options(cmd *cobra.Command) config.Options {
	o := config.Options{Path: s.file, Home: s.home, Environment: config.HostEnvironment(), Adapters: adapterSchemas()}
	if cmd.Flags().Changed("host") {
		o.Flags.Host = &s.host
	}
	if cmd.Flags().Changed("port") {
		o.Flags.Port = &s.port
	}
	return o
}

// findHome returns the home, which does not depend on the configuration.
func (s *settings) findHome() (string, error) {
	return config.FindHome(s.home, config.HostEnvironment())
}

// storage reads only the storage section: problems elsewhere must not prevent a backup or restore. Without --config, it reads
// the file of the server that uses the home, so that the command does not mistake another database for the server's.
func (s *settings) storage(ctx context.Context) (*config.Config, error) {
	file, named := s.file, ""
	if home, err := s.findHome(); err == nil && file == "" {
		if status, err := control.Dial(home).Status(ctx); err == nil {
			file, named = status.Config, status.Config
		}
	}
	c, err := config.LoadStorage(config.Options{Path: file, Home: s.home, Environment: config.HostEnvironment(), Adapters: adapterSchemas()})
	if problems, several := errors.AsType[config.Problems](err); several && slices.ContainsFunc(problems, func(p config.Problem) bool { return p.Variable != "" }) {
		return nil, fmt.Errorf("%w; run this command with the server's environment variables, such as those in its EnvironmentFile (docs/operations.md)", err)
	}
	if err != nil && named != "" {
		return nil, fmt.Errorf("%w; the running server reads %s; pass --config with the path under which this command can read that file", err, named)
	}
	return c, err
}

// inspectFrom reads the configuration of a home and a file, both of which may be "", for display.
func inspectFrom(home, file string) (c *config.Config, unset config.Problems, err error) {
	return config.Inspect(config.Options{Path: file, Home: home, Environment: config.HostEnvironment(), Adapters: adapterSchemas()})
}
