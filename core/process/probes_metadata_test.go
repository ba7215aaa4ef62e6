//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// metadataProbes are attempts to change the mode, owner, times and attributes of files that the app may only
// read, and to use up memory that the kernel holds for an app.
func metadataProbes() map[string]func(target) string {
	return map[string]func(target) string{
		"the metadata of a file that is open for reading": func(target) string {
			file, err := os.Open("/proc/self/exe")
			if err != nil {
				return err.Error()
			}
			defer file.Close()
			return changesOpen(int(file.Fd()))
		},
		"the metadata of a directory that is open": func(target) string {
			dir, err := os.Open("/usr")
			if err != nil {
				return err.Error()
			}
			defer dir.Close()
			return changesOpen(int(dir.Fd()))
		},
		"the metadata of devices": changesDevices,
		"datagrams between Unix sockets": func(target) string {
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK} {
				if got := socketOf(unix.AF_UNIX, kind, 0); got != "" {
					return got
				}
				if _, err := unix.Socketpair(unix.AF_UNIX, kind, 0); err == nil {
					return "a pair of sockets"
				}
			}
			return ""
		},
		"an endless number of empty files": createsFiles,
		"its own file's mode and age":      changesOwn,
	}
}

// changesOpen sets values that an open file already has, so that the test is unharmed if it succeeds.
func changesOpen(fd int) string {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err.Error()
	}
	flags, flagsErr := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	for name, err := range map[string]error{
		"fchmod": unix.Fchmod(fd, stat.Mode&0o777), "fchown": unix.Fchown(fd, int(stat.Uid), int(stat.Gid)),
		"futimens": futimens(fd, []unix.Timespec{stat.Atim, stat.Mtim}), "futimens to now": futimens(fd, nil),
		"fsetxattr":               unix.Fsetxattr(fd, "user.planted", []byte("x"), 0),
		"fremovexattr":            unix.Fremovexattr(fd, "user.planted"),
		"F_SET_RW_HINT":           setHint(fd),
		"a new subvolume":         unix.IoctlSetPointerInt(fd, 0x5000940e, 0), // BTRFS_IOC_SUBVOL_CREATE, where there is Btrfs
		"FS_IOC_SETFLAGS":         errors.Join(flagsErr, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags))),
		"chmod by the descriptor": unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), stat.Mode&0o777),
	} {
		if err == nil {
			return name
		}
	}
	return ""
}

func setHint(fd int) error {
	const command = 1024 + 12 // F_SET_RW_HINT of linux/fcntl.h
	hint := uint64(0)         // RWH_WRITE_LIFE_NOT_SET, as before
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), command, uintptr(unsafe.Pointer(&hint))); errno != 0 {
		return errno
	}
	return nil
}

func futimens(fd int, times []unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(unsafe.SliceData(times))), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func changesDevices(target) string {
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		at := filepath.Join("/dev", name)
		var stat unix.Stat_t
		if err := unix.Stat(at, &stat); err != nil {
			return err.Error()
		}
		for call, err := range map[string]error{
			"chmod": unix.Chmod(at, stat.Mode&0o777), "chown": unix.Chown(at, int(stat.Uid), int(stat.Gid)),
			"utimes": unix.Utimes(at, nil), "utimensat": unix.UtimesNano(at, []unix.Timespec{stat.Atim, stat.Mtim}),
		} {
			if err == nil {
				return call + " of " + at
			}
		}
		for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY} {
			fd, err := unix.Open(at, flags, 0)
			if err != nil {
				return fmt.Sprintf("%s cannot be used: %v", at, err)
			}
			got := changesOpen(fd)
			_ = unix.Close(fd)
			if got != "" {
				return got + " of " + at
			}
		}
	}
	if err := os.WriteFile("/dev/null", []byte("x"), 0); err != nil {
		return "/dev/null cannot be written to: " + err.Error()
	}
	return ""
}

// createsFiles creates empty files in memory. Each uses about 1 KiB of kernel memory.
func createsFiles(target) string {
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		for n := range 20_000 {
			file, err := os.OpenFile(filepath.Join(dir, "empty"+strconv.Itoa(n)), os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				break
			}
			_ = file.Close()
			if n == 19_999 {
				return dir + " holds 20,000 files"
			}
		}
	}
	return ""
}

// changesOwn is not an attack: an app may change its own files.
// changesByPath changes a file and a link, by absolute and relative paths and from a directory.
func changesByPath(file string) error {
	link := file + "-link"
	if err := os.Symlink(filepath.Base(file), link); err != nil {
		return err
	}
	dir, err := unix.Open(filepath.Dir(file), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name, nothing := filepath.Base(file), make([]unix.Timespec, 2)
	return errors.Join(
		unix.Chmod(file, 0o600), unix.Chmod(link, 0o640), unix.Fchmodat(dir, name, 0o640, 0),
		unix.Chown(file, os.Getuid(), os.Getgid()), unix.Lchown(link, os.Getuid(), os.Getgid()), unix.Fchownat(dir, name, -1, os.Getgid(), 0),
		unix.UtimesNano(file, nothing), unix.UtimesNanoAt(dir, name, nothing, 0), unix.UtimesNanoAt(dir, name+"-link", nothing, unix.AT_SYMLINK_NOFOLLOW))
}

func changesOwn(t target) string {
	file, err := os.Create(filepath.Join(t.Data, "own"))
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	readable, err := os.Open(file.Name())
	if err != nil {
		return err.Error()
	}
	defer readable.Close()
	for _, f := range []*os.File{file, readable} {
		err := errors.Join(unix.Fchmod(int(f.Fd()), 0o640), unix.Fchown(int(f.Fd()), os.Getuid(), os.Getgid()), futimens(int(f.Fd()), make([]unix.Timespec, 2)))
		if err != nil {
			return "its own file cannot be changed: " + err.Error()
		}
	}
	if err := changesByPath(file.Name()); err != nil {
		return "its own file cannot be changed by path: " + err.Error()
	}
	info, err := file.Stat()
	if err != nil || info.Mode().Perm() != 0o640 || info.ModTime().Unix() != 0 {
		return fmt.Sprintf("its own file is %v of %v (%v)", info.Mode(), info.ModTime(), err)
	}
	return ""
}
