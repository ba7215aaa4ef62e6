package process

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAFileReplacedBetweenCheckAndExecutionIsNotExecuted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin")
	write := func(script string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const script = "#!/bin/sh\necho checked\n"
	write(script)
	hash := sha256.Sum256([]byte(script))
	file, err := (&Verified{Path: path, SHA256: hex.EncodeToString(hash[:])}).open()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write("#!/bin/sh\necho replaced\n")
	cmd := exec.CommandContext(t.Context(), descriptorPath(3, path))
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.Output()
	if err != nil || string(out) != "checked\n" {
		t.Errorf("after the file was replaced it printed %q (%v)", out, err)
	}
}
