package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/audit"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Work with audit files"}
	cmd.AddCommand(&cobra.Command{
		Use: "verify FILE", Short: "Check that no line of an audit file was changed or removed", Args: cobra.ExactArgs(1),
		Long: "Check the chain of an audit file, and of the closed files beside it (FILE.000001 and so on), the oldest first. It prints\n" +
			"the number of records and the hash of the last one; compare that hash with an earlier copy to see that the end was not cut\n" +
			"off. The exit status is 1 when a file is missing or a line is wrong, which is named.",
		RunE: func(cmd *cobra.Command, args []string) error {
			summary, err := audit.Verify(args[0])
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
	})
	return cmd
}
