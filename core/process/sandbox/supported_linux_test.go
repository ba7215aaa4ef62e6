package sandbox

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestAProcessWithoutARootMountIsInAChroot(t *testing.T) {
	const proc = "411 402 0:5 / /proc rw,relatime - proc proc rw\n"
	for mounts, want := range map[string]bool{
		"":   false,
		proc: false,
		"402 300 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n" + proc:         true,
		"402 300 0:41 /images/a / rw - overlay overlay rw\n" + proc:                   true,
		"402 300 254:1 / /srv/root rw,relatime shared:1 - ext4 /dev/vda1 rw\n" + proc: false,
	} {
		if got := hasRootMount(mounts); got != want {
			t.Errorf("a mount at the root is %v, want %v, in\n%s", got, want, mounts)
		}
	}
	// If the kernel creates a user namespace, there is no chroot.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if cmd.Run() == nil && InChroot() {
		t.Error("this process is reported to be in a chroot")
	}
}
