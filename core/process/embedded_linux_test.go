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
	file, err := loadProgram(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	cmd := exec.CommandContext(t.Context(), descriptorPath(3, ""))
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Run(); err == nil || err.Error() != "exit status 1" {
		t.Errorf("executing it: %v, want exit status 1", err)
	}
	if writable, err := os.OpenFile(descriptorPath(int(file.Fd()), ""), os.O_RDWR, 0); err == nil {
		if _, err := writable.Write([]byte{0}); err == nil {
			t.Error("it was changed")
		}
		_ = writable.Close()
	}
}

func TestAShimThatDoesNotRunIsReported(t *testing.T) {
	other, err := os.ReadFile("/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	for name, embedded := range map[string][]byte{"none": nil, "another program": other, "no program": []byte("#")} {
		if file, err := loadShim(embedded); file != nil || (err == nil) != (embedded == nil) {
			t.Errorf("%s: %v, %v", name, file, err)
		}
	}
}
