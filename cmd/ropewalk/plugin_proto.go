package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/proto"
)

func pluginProtoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "proto [DIR]", Short: "Write the .proto files of the plugin contracts into DIR (default ./proto)", Args: cobra.MaximumNArgs(1),
		Long: "Write the .proto files of the contracts that this ropewalk supports, for a plugin in a language other than Go. DIR is " +
			"what protoc takes with -I. Files from an earlier version are replaced; others in DIR stay as they are.",
		Example: "  ropewalk plugin proto proto && protoc -I proto --python_out=gen ropewalk/plugin/v1/plugin.proto",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "proto"
			if len(args) > 0 {
				dir = args[0]
			}
			written, err := writeProto(dir)
			for _, path := range written {
				cmd.Println(path)
			}
			return err
		},
	}
}

// writeProto writes the .proto files to dir and returns their paths.
func writeProto(dir string) (written []string, err error) {
	files := proto.Files()
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return fmt.Errorf("write the contracts: %w", err)
		}
		written = append(written, to)
		return nil
	})
	return written, err
}
