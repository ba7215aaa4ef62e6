package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestPluginProtoWritesTheContractsAsTheyAreInTheRepository(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "proto").exits(0, "proto/ropewalk/plugin/v1/plugin.proto")
	s.run("ropewalk", "plugin", "proto", "other/place").exits(0, "other/place/ropewalk/auth/v1/auth.proto")
	s.run("ropewalk", "plugin", "proto", "other/place").exits(0) // again, like after an upgrade
	root := filepath.Join(testenv.Root(t), "proto")
	all, err := filepath.Glob(filepath.Join(root, "ropewalk", "*", "v*", "*.proto"))
	if err != nil || len(all) < 4 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	for _, file := range all {
		name, _ := filepath.Rel(root, file)
		want, _ := os.ReadFile(file)
		for _, dir := range []string{"proto", "other/place"} {
			if got, err := os.ReadFile(filepath.Join(s.dir, dir, name)); err != nil || string(got) != string(want) {
				t.Errorf("%s in %s: %v, %d bytes, want %d", name, dir, err, len(got), len(want))
			}
		}
	}
	s.write("file", "")
	s.run("ropewalk", "plugin", "proto", "file").exits(1, "file")
}
