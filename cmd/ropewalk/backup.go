package main

import (
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/backup"
)

func backupCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write the state into one file, while the server runs or not", Args: cobra.ExactArgs(1),
		Long: "Writes users, installed apps, conversations, usage and settings, as they are at one moment, into a new file. The file " +
			"holds the apps' secrets: keep it as safe as the home. The apps' own data, the configuration and the plugins are not " +
			"in it, nor the apps' files but those that servers on one database share.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.state(cmd)
			if err != nil {
				return err
			}
			if err := backup.Write(cmd.Context(), o.Location(), args[0]); err != nil {
				return err
			}
			cmd.Printf("The state was written to %s and checked.\n", args[0])
			return nil
		},
	}
	s.bind(cmd)
	return cmd
}

func restoreCommand() *cobra.Command {
	var s settings
	var replace bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make the state what a backup holds; no server may run", Args: cobra.ExactArgs(1),
		Long: "Makes the state what a backup holds. It is the same file for SQLite and for PostgreSQL, so this also brings a state " +
			"from one to the other: change storage.url and restore. An empty place is filled; a state that is there is replaced " +
			"with --replace only.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.state(cmd)
			if err != nil {
				return err
			}
			kept, err := backup.Restore(cmd.Context(), o.Location(), args[0], replace)
			if err != nil {
				return err
			}
			cmd.Printf("The state is what %s holds.\n", args[0])
			if kept != "" {
				cmd.Printf("The one before is in %s.\n", kept)
			}
			return nil
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a state that is there")
	return cmd
}

// state says where the configuration has the state.
func (s *settings) state(cmd *cobra.Command) (store.Options, error) {
	c, err := s.load(cmd)
	if err != nil {
		return store.Options{}, err
	}
	return store.Options{Path: filepath.Join(c.Home, "ropewalk.db"), URL: c.Storage.URL, Logger: hclog.NewNullLogger()}, nil
}
