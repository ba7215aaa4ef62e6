package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/hashchain"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Work with audit files"}
	cmd.AddCommand(&cobra.Command{
		Use: "verify FILE", Short: "Check that no line of an audit file was changed or removed", Args: cobra.ExactArgs(1),
		Long: "Check the chain of an audit file. It prints the number of records and the hash of the last one; compare that hash with\n" +
			"an earlier copy to see that the end was not cut off. The exit status is 1 when a line is wrong, which is named.",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			summary, err := hashchain.Verify(file)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d records, last hash %s\n", summary.Records, summary.Hash)
			return err
		},
	})
	return cmd
}
