package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// This test runs the commands from docs/replicas.md (migrating from a single server) and docs/operations.md.
func TestStateIsBackedUpFromARunningServerAndRestoredIntoAStoppedOne(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "http: {port: 0}\n")
	s.run("ropewalk", "backup", "one.db").exits(1, "there is nothing to back up", "specify the server's home with --home")
	s.run("ropewalk", "backup", "nowhere/one.db").exits(1, "the directory nowhere does not exist; create it")
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "http: {port: 0}\nmodels: {providers: {m: {type: openai, apiKey: \"${env:ONLY_THE_SERVER_HAS_IT}\"}}}\n")
	s.run("ropewalk", "backup", "one.db").exits(1, "there is nothing to back up")
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "http: {port: 0}\n")
	s.write("file", "")
	s.run("ropewalk", "backup", "file/one.db").exits(1, "file is not a directory")
	t.Run("while the server is running", func(t *testing.T) {
		running := *s
		running.t = t
		running.serve()
		running.run("ropewalk", "backup", "one.db").exits(0, "Written to one.db and verified")
		running.run("ropewalk", "backup", "one.db").exits(1, "the file already exists")
		running.run("ropewalk", "restore", "one.db").exits(1, "another server (process ")
		running.run("ropewalk", "restore", "--replace", "one.db").exits(1, "another server (process ")
	})
	s.run("ropewalk", "restore", "one.db").exits(1, "already contains data; ", "--replace")
	s.run("ropewalk", "restore", "--replace", "one.db").exits(0, "Restored from one.db.", "The previous state is in "+s.home)
	s.write("garbage", "this is not a state")
	s.run("ropewalk", "restore", "--replace", "garbage").exits(1, "restore from garbage: the file is damaged or is not a backup; choose another one")
	s.home = filepath.Join(t.TempDir(), "new")
	s.run("ropewalk", "restore", s.dir+"/one.db").exits(0, "Restored from ")
	if _, err := os.Stat(filepath.Join(s.home, "ropewalk.db")); err != nil {
		t.Error(err)
	}
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "http: {port: 0}\n")
	s.serve()
}

// Otherwise the command could back up a database that the server no longer uses, such as the file from before a move to
// PostgreSQL.
func TestABackupContainsTheRunningServersState(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := s.write("elsewhere.yaml", "http: {port: 0}\n")
	s.serve("--config", file)
	s.run("ropewalk", "backup", "one.db").exits(0, "Written to one.db and verified")
	s.write("elsewhere.yaml", "storage: {url: \"postgres://ropewalk:${env:ONLY_THE_SERVER_HAS_IT}@127.0.0.1:1/ropewalk\"}\n")
	s.run("ropewalk", "backup", "two.db").exits(1, "elsewhere.yaml:1: storage.url: the environment variable ONLY_THE_SERVER_HAS_IT is not set", "EnvironmentFile")
	s.environ = []string{"ONLY_THE_SERVER_HAS_IT=x"}
	s.run("ropewalk", "backup", "two.db").exits(1, "PostgreSQL (storage.url) cannot be reached")
}
