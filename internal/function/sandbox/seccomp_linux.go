//go:build amd64 || arm64

package sandbox

import (
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets into the kernel's struct seccomp_data, on little-endian machines.
const (
	numberOffset   = 0
	archOffset     = 4
	argumentOffset = 16 // 8 bytes each, the lower half first
)

// Requests of ioctl that package unix does not name.
const (
	fionclex = 0x5450
	fioclex  = 0x5451
	fionbio  = 0x5421
)

// Answers of the filter.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// absent is the answer to all calls that are not on the list: libraries then do without.
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// seccompFilter returns the program that decides about system calls.
//
// Only calls of a list are allowed, so a call of a later kernel is none of a tenant's. The list has
// no call that creates a process, a namespace or a mount, that traces, loads or watches, and none
// with a ring or a key of the kernel.
func seccompFilter() ([]bpf.RawInstruction, error) {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		bpf.LoadAbsolute{Off: numberOffset, Size: 4},
	}

	for _, rule := range argumentRules() {
		program = append(program, rule...)
	}
	for _, number := range allowedCalls {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: 1}, bpf.RetConstant{Val: allow})
	}

	return bpf.Assemble(append(program, bpf.RetConstant{Val: absent}))
}

// argumentRules are the rules of calls that depend on an argument.
func argumentRules() [][]bpf.Instruction {
	const (
		thread    = unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND
		forbidden = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_PARENT | unix.CLONE_PTRACE
		shared = unix.MAP_SHARED | unix.MAP_ANONYMOUS // memory that RLIMIT_DATA does not count
	)

	return [][]bpf.Instruction{
		// A thread, never a process.
		on(unix.SYS_CLONE,
			bpf.LoadAbsolute{Off: argumentOffset, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: thread | forbidden},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: thread, SkipFalse: 1},
			bpf.RetConstant{Val: allow},
			bpf.RetConstant{Val: refuse}),
		// No netlink, no raw packets, and no vsock, which leaves the network namespace.
		on(unix.SYS_SOCKET, oneOf(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6)...),
		on(unix.SYS_SOCKETPAIR, oneOf(0, unix.AF_UNIX)...),
		// The names of threads and memory, but not the signal at the server's end.
		on(unix.SYS_PRCTL, oneOf(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE)...),
		on(unix.SYS_IOCTL, oneOf(1, fionbio, unix.TIOCINQ, fioclex, fionclex, unix.TCGETS, unix.TIOCGWINSZ)...),
		on(unix.SYS_MMAP,
			bpf.LoadAbsolute{Off: argumentOffset + 3*8, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.MAP_TYPE | unix.MAP_ANONYMOUS},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: shared, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS, SkipTrue: 1},
			bpf.RetConstant{Val: allow},
			bpf.RetConstant{Val: refuse}),
	}
}

// on runs a rule, which always answers, for one call.
func on(call uint32, rule ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: uint8(len(rule))}}, rule...)
}

// oneOf is a rule that allows a call if an argument is one of some values.
func oneOf(argument uint32, values ...uint32) []bpf.Instruction {
	rule := []bpf.Instruction{bpf.LoadAbsolute{Off: argumentOffset + argument*8, Size: 4}}
	for _, v := range values {
		rule = append(rule, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, bpf.RetConstant{Val: allow})
	}

	return append(rule, bpf.RetConstant{Val: refuse})
}

// install installs a filter for this thread, and so for the program that it becomes.
func install(filter []bpf.RawInstruction) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	_, _, number := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program)))
	if number != 0 {
		return number
	}

	return nil
}
