//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// blockBytes is how many bytes the programs below allocate at a time.
const blockBytes = 8 << 20

// allocateShared uses memory that could be shared, until it is stopped.
func allocateShared() {
	for pause := time.Millisecond; ; pause += time.Millisecond {
		block, err := unix.Mmap(-1, 0, blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			fmt.Println(err)
			return
		}
		touch(block)
		<-time.After(pause)
	}
}

// allocateDetached uses memory that does not belong to any process, until it is stopped.
func allocateDetached() {
	for pause := time.Millisecond; ; pause += time.Millisecond {
		block, _, err := segment(blockBytes)
		if err != nil {
			fmt.Println(err)
			return
		}
		touch(block)
		_ = unix.SysvShmDetach(block)
		<-time.After(pause)
	}
}

// createSemaphores uses memory for semaphores, 2 MB for each set, until it is stopped.
func createSemaphores() {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 32_000, unix.IPC_CREAT|0o600); errno != 0 {
			fmt.Println(errno)
			<-time.After(time.Minute)
		}
		<-time.After(time.Millisecond)
	}
}

// queueMessages uses memory for messages that nobody receives, until it is stopped. They contain nothing.
func queueMessages() {
	message := struct{ kind int64 }{1}
	for {
		queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
		if errno != 0 {
			fmt.Println(errno)
			<-time.After(time.Minute)
		}
		for errno == 0 {
			_, _, errno = unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message)), 0, unix.IPC_NOWAIT, 0, 0)
		}
	}
}

// allocateTables uses memory for page tables, until it is stopped. It uses little other memory, because all pages that
// it reads are the same empty page.
func allocateTables() {
	const size, perTable = 8 << 30, 2 << 20
	for read := 0; ; {
		block, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err == nil {
			err = unix.Madvise(block, unix.MADV_NOHUGEPAGE)
		}
		if err != nil {
			fmt.Println(err, read)
			return
		}
		for i := 0; i < len(block); i += perTable {
			read += int(block[i])
		}
		<-time.After(20 * time.Millisecond)
	}
}

func segment(size int) (memory []byte, id int, err error) {
	if id, err = unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600); err != nil {
		return nil, 0, err
	}
	memory, err = unix.SysvShmAttach(id, 0, 0)
	return memory, id, err
}

func touch(block []byte) {
	for i := 0; i < len(block); i += os.Getpagesize() {
		block[i] = 1
	}
}

// The number of processes that share starts, and the size of the memory that they share.
const (
	sharers     = 3
	sharedBytes = 160 << 20
)

// share starts processes that attach the same memory and keep it during a few measurements.
func share() {
	block, id, err := segment(sharedBytes)
	if err != nil {
		fmt.Println(err)
		return
	}
	touch(block)
	var all []*exec.Cmd
	for range sharers {
		cmd := exec.Command("/proc/self/exe", bundleArg, "attach", strconv.Itoa(id))
		_, inErr := cmd.StdinPipe() // closed when this process ends
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
			fmt.Println(err)
			return
		}
		if awaitLine(out, "attached") {
			fmt.Println("attached")
		}
		all = append(all, cmd)
	}
	<-time.After(4 * sandbox.WatchInterval)
	for _, cmd := range all {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func attach(id string) {
	n, _ := strconv.Atoi(id)
	block, err := unix.SysvShmAttach(n, 0, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	touch(block)
	fmt.Println("attached")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
