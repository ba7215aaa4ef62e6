package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data. Both supported architectures are little-endian: the low half of
// an argument comes first.
const (
	offsetNumber    = 0
	offsetProcessor = 4
	offsetArguments = 16
)

// x32 marks the system calls of amd64's second calling convention.
const x32 = 0x40000000

// program is a system call filter under construction.
type program struct{ code []bpf.Instruction }

func (p *program) add(code ...bpf.Instruction) { p.code = append(p.code, code...) }

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// refuse1 is refuse as a slice, for slices.Concat.
func refuse1(errno unix.Errno) []bpf.Instruction { return []bpf.Instruction{refuse(errno)} }

// pretend skips a system call, which then returns 0.
func pretend() bpf.Instruction { return refuse(0) }

func permit() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

// ask passes a system call to the broker.
func ask() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF} }

func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArguments + 8*n, Size: 4}
}

// equal runs code when an argument has a value.
func equal(n, value uint32, code ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{argument(n), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(code))}}, code...)
}

// equalPart runs code when the bits of mask in an argument have a value.
func equalPart(n, mask, value uint32, code ...bpf.Instruction) []bpf.Instruction { //nolint:unparam // the number of the argument makes the filters readable
	return append([]bpf.Instruction{
		argument(n), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(code))},
	}, code...)
}

// when runs code when an argument has any of the bits.
func when(n, bits uint32, code ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{argument(n), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: uint8(len(code))}}, code...)
}

// pointer runs code when any of an argument's 64 bits is set.
func pointer(n uint32, code ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		argument(n), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		bpf.LoadAbsolute{Off: offsetArguments + 8*n + 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: uint8(len(code))},
	}, code...)
}

// on runs code for one system call, and allows the call if the code does not decide.
func (p *program) on(number uintptr, code ...bpf.Instruction) {
	p.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(code) + 1)})
	p.add(code...)
	p.add(permit())
}

// newProgram loads the system call number and refuses calls of other calling conventions.
func newProgram() (*program, error) {
	processor, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("there is no system call filter for %s", runtime.GOARCH)
	}
	return &program{code: []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetProcessor, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: processor, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}}, nil
}

// install installs the filter on the calling thread. With unix.SECCOMP_FILTER_FLAG_NEW_LISTENER the result is
// the descriptor on which notifications arrive.
func (p *program) install(flags uintptr) (listener int, err error) {
	raw, err := bpf.Assemble(p.code)
	if err != nil {
		return 0, fmt.Errorf("assemble the system call filter: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("install the system call filter: %w", errno)
	}
	return int(fd), nil
}
