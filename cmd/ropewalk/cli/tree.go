package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/core/config/schema"
)

// Prepare applies the shared conventions to a tree of commands: a mistake on the command line exits with status
// 2 and suggests the most similar command. A group without a subcommand prints its help and also exits with
// status 2.
func Prepare(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	prepare(root)
	for _, sub := range root.Commands() {
		if sub.Name() == "help" {
			sub.Run, sub.RunE = nil, help
		}
	}
}

// Execute runs the command that args name. Asking for help about an unknown command is an error here; cobra
// would print the group's help instead.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	group, rest, err := root.Find(args)
	asksHelp := slices.Contains(rest, "--help") || slices.Contains(rest, "-h")
	if err == nil && asksHelp && group.HasSubCommands() && !strings.HasPrefix(rest[0], "-") {
		return unknownCommand(group, rest)
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// help prints the help for the command that args name.
func help(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil {
		return Usage(err)
	}
	if len(rest) > 0 {
		return unknownCommand(about, rest)
	}
	about.SetContext(cmd.Context())
	about.InitDefaultHelpFlag() // so that the help lists --help and --version
	about.InitDefaultVersionFlag()
	return about.Help()
}

func prepare(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(fmt.Errorf("%w; see `%s --help`", flagError(cmd, err), cmd.CommandPath()))
	})
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = unknownCommand
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			err := args(cmd, given)
			if err == nil {
				return nil
			}
			return Usage(fmt.Errorf("%s; usage: %s", argumentError(cmd, given, err), cmd.UseLine()))
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}

// flagError suggests the flag that was probably meant, or states what a flag accepts. It leaves out how parsing failed.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := schema.Near(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
		return err
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	want := map[string]string{
		"int": "a whole number", "duration": "a duration, such as 30s or 12h", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s: must be %s, not %q", invalid.GetFlag().Name, want, invalid.GetValue())
}

// argumentError describes which argument is missing or extra, using the names in the usage line. If that line does not name
// it, the text of err is used.
func argumentError(cmd *cobra.Command, given []string, err error) string {
	_, after, _ := strings.Cut(cmd.Use, " ")
	wanted := strings.Fields(after)
	after, _, _ = strings.Cut(after, " [flags]")
	switch {
	case strings.Contains(after, "|") && !strings.Contains(after, "[") && len(given) == 0:
		return "missing " + strings.ReplaceAll(after, " | ", " or ")
	case strings.Contains(after, "|") && len(given) > 1:
		return fmt.Sprintf("unexpected argument %q", given[1])
	case strings.ContainsAny(after, "[|"):
		return err.Error()
	}
	switch {
	case len(given) > len(wanted):
		return fmt.Sprintf("unexpected argument %q", given[len(wanted)])
	case len(given) < len(wanted):
		text := "missing " + strings.Join(wanted[len(given):], " and ")
		if len(given) == 0 && len(cmd.ValidArgs) > 0 {
			text += ", one of " + strings.Join(cmd.ValidArgs, ", ")
		}
		return text
	}
	return err.Error()
}

// unknownCommand runs when a group is called without a known subcommand. It prints the group's help if there is no
// subcommand, and otherwise suggests the most similar one. It always returns an error.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return Usage(fmt.Errorf("specify one of the commands of `%s`", cmd.CommandPath()))
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := nearest(cmd, args[0]); near != "" {
		text += fmt.Sprintf("; did you mean `%s %s`?", cmd.CommandPath(), near)
	} else {
		text += fmt.Sprintf("; see `%s --help`", cmd.CommandPath())
	}
	return Usage(fmt.Errorf("%s", text))
}

// startsLike returns the length of the common prefix of two words in bytes: typing errors are more common near the end.
func startsLike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// nearest returns the subcommand that a name most likely meant, or "".
func nearest(cmd *cobra.Command, name string) string {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return slices.MinFunc(near, func(a, b string) int {
			return cmp.Or(levenshtein.ComputeDistance(name, a)-levenshtein.ComputeDistance(name, b), startsLike(name, b)-startsLike(name, a))
		})
	}
	var all []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && len(name) > 2 && strings.Contains(sub.Name(), name) {
			all = append(all, sub.Name())
		}
	}
	slices.Sort(all)
	if len(all) > 0 {
		return all[0]
	}
	return ""
}
