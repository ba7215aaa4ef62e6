package installed

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/pluginhost/install"
)

func (o Options) removeCommand() *cobra.Command {
	var at place
	var force bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a plugin from the home", Args: cobra.ExactArgs(1),
		Long: "Remove the file of a plugin, given as auth-okta or okta, from <home>/plugins and its record from " +
			"<home>/plugins.lock. If the configuration uses the plugin, the command does nothing unless --force is " +
			"given. The plugin's data in <home>/plugins/data stays.",
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := at.dir()
			if err != nil {
				return err
			}
			name := pluginhost.LockFile{Home: home}.FileOf(args[0])
			if err := o.checkUnused(at, home, name); err != nil && !force {
				return err
			}
			_, running := control.Dial(home).Plugins(cmd.Context())
			copies := errors.Is(running, control.ErrNotRunning) // a running server may restart the plugin from its copy
			if err := (&install.Installer{Home: home}).Remove(name, copies); err != nil {
				return err
			}
			cmd.Printf("%s has been removed.\n", name)
			return nil
		},
	}
	at.bind(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "remove it even if the configuration uses it")
	return cmd
}

// checkUnused returns an error if the configuration uses the plugin, or cannot be read.
func (o Options) checkUnused(at place, home, name string) error {
	all, err := o.configured(at)
	if err != nil {
		return fmt.Errorf("the configuration has errors, so it is unknown whether it uses %s (give --force to remove the plugin anyway): %w", name, err)
	}
	file := filepath.Join(pluginhost.LockFile{Home: home}.Dir(), name)
	for _, used := range all {
		_, builtin := o.Builtins[used.Kind][used.Adapter]
		byName := used.Path == "" && !builtin && string(used.Kind)+"-"+used.Adapter == name
		if byName || used.Path == file {
			return fmt.Errorf("%s is used by %s in the configuration; change that and run `ropewalk reload` first, or give --force", name, strings.TrimSuffix(used.At, "."))
		}
	}
	return nil
}
