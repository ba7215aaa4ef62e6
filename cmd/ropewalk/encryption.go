package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/statekey"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

func encryptionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "encryption", Short: "Create and rotate the keys that encrypt apps' secrets in the server's state"}
	cmd.AddCommand(&cobra.Command{
		Use: "new-key", Short: "Print a new key for storage.keyFile, storage.keyCommand or ROPEWALK_STORAGE_KEY", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), seal.NewKey().Reveal())
			return err
		},
	}, rotateCommand())
	return cmd
}

func rotateCommand() *cobra.Command {
	var s settings
	var drop bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Encrypt the server's state with a new key in storage.keyFile (the server must be stopped)", Args: cobra.NoArgs,
		Long: "Put a new key before the others in storage.keyFile, and encrypt the state with it. The file is created " +
			"if it does not exist. The older keys stay in it, because older backups need them; --drop removes " +
			"them.\n\nIf the keys come from a command or the environment, put the new key before the current ones " +
			"there and start the server. At each start, the server uses the first key to encrypt everything that is in " +
			"plain text or encrypted with a different key.",
		RunE: func(cmd *cobra.Command, _ []string) error { return s.rotate(cmd, drop) },
	}
	s.bind(cmd)
	cmd.Flags().BoolVar(&drop, "drop", false, "remove the older keys from the file afterwards; older backups cannot be restored without them")
	return cmd
}

// rotate changes the file only if the state can be opened with the keys in it. It removes older keys only if
// nothing needs them anymore. If it is interrupted at any point, the file still contains the keys for the
// state.
func (s *settings) rotate(cmd *cobra.Command, drop bool) error {
	c, err := s.storage(cmd.Context())
	if err != nil {
		return err
	}
	file := statekey.SourceOf(c).File
	if file == "" {
		return errors.New("storage.keyFile is not set; set it to a file outside the home, or, if the keys come from a command or the environment, change them there")
	}
	o := store.Options{Path: filepath.Join(c.Home, "ropewalk.db"), URL: c.Storage.URL, Logger: hclog.NewNullLogger()}
	o.Keys, err = statekey.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := config.CreateHome(c.Home); err != nil { // it may not exist before the first start
		return err
	}
	if err := database.CheckUnused(cmd.Context(), o.Location()); err != nil {
		return err
	}
	if err := reopen(cmd, o); err != nil {
		return err
	}
	next, err := seal.Parse(seal.NewKey())
	if o.Keys != nil && err == nil {
		next, err = o.Keys.Before(next.Text())
	}
	if err != nil {
		return err
	}
	if err := statekey.WriteFile(file, next); err != nil {
		return err
	}
	o.Keys = next
	if err := reopen(cmd, o); err != nil {
		return fmt.Errorf("the new key %[2]s comes first in %[1]s, and the server encrypts with it when it next starts: %[3]w", file, next.ID(), err)
	}
	if drop {
		if err := statekey.WriteFile(file, next.First()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Encrypted with the key %s, the first one in %s. Keep a copy of this file, because the apps cannot be read without it.\n", next.ID(), file)
	return err
}

// reopen opens and closes the state, which encrypts it with the first key.
func reopen(cmd *cobra.Command, o store.Options) error {
	st, err := store.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	return st.Close()
}
