package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/audit"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Work with audit files"}
	cmd.AddCommand(auditVerifyCommand())
	return cmd
}

func auditVerifyCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "verify [FILE]", Short: "Check that no line of an audit file was changed or removed", Args: cobra.MaximumNArgs(1),
		Long: "Check the chain of an audit file, by default the configured audit.file, and of the closed files next to " +
			"it (FILE.000001 and so on), the oldest first. The command prints the number of records and the hash of " +
			"the last one. To make sure that the end was not cut off, compare that hash with an earlier copy. If a " +
			"file is missing or a line is invalid, the command reports it and the exit status is 1.",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := auditFile(cmd, &s, args)
			if err != nil {
				return err
			}
			summary, err := audit.Verify(file)
			if err != nil {
				return err
			}
			files := ""
			if summary.Files > 1 {
				files = fmt.Sprintf(" in %d files", summary.Files)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d records%s, last hash %s\n", summary.Records, files, summary.Hash)
			return err
		},
	}
	s.bind(cmd)
	return cmd
}

// auditFile returns the file that was given, or else the configured one.
func auditFile(cmd *cobra.Command, s *settings, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	c, _, err := s.inspect(cmd)
	if err != nil {
		return "", err
	}
	if c.Audit.File == "" {
		return "", cli.Usage(errors.New("the configuration has no audit.file; specify the FILE to check, or set audit.file"))
	}
	return c.Audit.File, nil
}
