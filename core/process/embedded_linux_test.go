package process

import (
	"os"
	"os/exec"
	"testing"
)

func TestAProgramInMemoryRunsAndCannotBeChanged(t *testing.T) {
	program, err := os.ReadFile("/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	path, err := loadProgram(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), path).Run(); err == nil || err.Error() != "exit status 1" {
		t.Errorf("executing it: %v, want exit status 1", err)
	}
	if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		if _, err := file.Write([]byte{0}); err == nil {
			t.Error("it was changed")
		}
		_ = file.Close()
	}
	if path, err := loadProgram([]byte("not a program")); err == nil {
		t.Errorf("%s is not a program, but was accepted", path)
	}
}
