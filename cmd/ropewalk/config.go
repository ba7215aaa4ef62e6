package main

import (
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/server"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the configuration, or print its schema"}
	cmd.AddCommand(configCheckCommand(), configSchemaCommand())
	return cmd
}

func configCheckCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "check", Short: "Say everything that is wrong with the configuration, without starting", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load(cmd)
			if err != nil {
				return err
			}
			for _, warning := range c.Warnings {
				cmd.PrintErrln("warning:", warning)
			}
			if err := server.Check(cmd.Context(), c, builtins(), hclog.NewNullLogger()); err != nil {
				return err
			}
			file := c.File
			if file == "" {
				file = "no file, the defaults"
			}
			cmd.Printf("The configuration is good (%s).\n", file)
			return nil
		},
	}
	s.bind(cmd)
	s.bindListener(cmd)
	return cmd
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration, for editors", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := config.Schema(adapterSchemas())
			if err != nil {
				return err
			}
			cmd.Println(string(schema))
			return nil
		},
	}
}
