package main

import (
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
)

// settings says where a command finds its configuration, through the flags shared by every command that reads
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

// storage reads only the storage section: problems elsewhere must not prevent a backup or restore.
func (s *settings) storage() (*config.Config, error) {
	return config.LoadStorage(config.Options{Path: s.file, Home: s.home, Environment: config.HostEnvironment(), Adapters: adapterSchemas()})
}

// inspectFrom reads the configuration of a home and a file, both of which may be "", for display.
func inspectFrom(home, file string) (c *config.Config, unset config.Problems, err error) {
	return config.Inspect(config.Options{Path: file, Home: home, Environment: config.HostEnvironment(), Adapters: adapterSchemas()})
}
