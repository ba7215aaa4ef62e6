package main

import (
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/sample"
)

// sampleCommand returns the command that the sample app's bundle runs.
func sampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sample", Short: "Run the sample app: an MCP server on standard input and output", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sample.Serve(cmd.Context(), version) },
	}
}
