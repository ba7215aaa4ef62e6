package main

import (
	"fmt"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/statekey"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/backup"
)

func backupCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write the server's state to a file (the server may be running)", Args: cobra.ExactArgs(1),
		Long: "Write users, installed apps, conversations, usage and settings to a new file, as of a single point in " +
			"time. The file contains the secrets of apps, which are encrypted if the state is (ropewalk encryption). " +
			"Protect it as carefully as the home. It does not contain the apps' own data, the configuration or plugins. It " +
			"contains the files of apps only if several servers share them through the database.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.state(cmd)
			if err != nil {
				return err
			}
			if err := backup.Write(cmd.Context(), o.Location(), args[0]); err != nil {
				return err
			}
			cmd.PrintErrf("Written to %s and verified.\n", args[0])
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
		Use: "restore FILE", Short: "Restore the server's state from a backup (the server must be stopped)", Args: cobra.ExactArgs(1),
		Long: "Restore the server's state from a backup. The file is the same for SQLite and PostgreSQL, so you can also use it " +
			"to move from one to the other: change storage.url and restore. Existing state is replaced only with " +
			"--replace.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.state(cmd)
			if err != nil {
				return err
			}
			if err := backup.Verify(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("restore from %s: %w", args[0], err)
			}
			if err := backup.CheckKeys(cmd.Context(), args[0], o.Keys); err != nil {
				return fmt.Errorf("restore from %s: %w", args[0], err)
			}
			kept, err := backup.Restore(cmd.Context(), o.Location(), args[0], replace)
			if err != nil {
				return err
			}
			cmd.PrintErrf("Restored from %s.\n", args[0])
			if kept != "" {
				cmd.PrintErrf("The previous state is in %s.\n", kept)
			}
			return nil
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace existing state")
	return cmd
}

// state returns the options for opening the configured state.
func (s *settings) state(cmd *cobra.Command) (store.Options, error) {
	c, err := s.storage(cmd.Context())
	if err != nil {
		return store.Options{}, err
	}
	keys, err := statekey.Load(cmd.Context(), c)
	if err != nil {
		return store.Options{}, err
	}
	return store.Options{Path: filepath.Join(c.Home, "ropewalk.db"), URL: c.Storage.URL, Keys: keys, Logger: hclog.NewNullLogger()}, nil
}
