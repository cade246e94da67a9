//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// allowedCalls are the system calls without a rule for their arguments: those of every machine, and
// those of olderCalls. The most frequent ones are first, since the filter goes through them in
// their order.
var allowedCalls = append([]uint32{
	unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_EPOLL_PWAIT,
	unix.SYS_EPOLL_PWAIT2, unix.SYS_EPOLL_CTL, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG,
	unix.SYS_CLOSE, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_CLOCK_GETTIME,
	unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER,
	unix.SYS_GETCPU, unix.SYS_MEMBARRIER, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_BRK, unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE,
	unix.SYS_PKEY_MPROTECT,

	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_GETSOCKNAME,
	unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SHUTDOWN, unix.SYS_SENDMMSG,
	unix.SYS_RECVMMSG, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
	unix.SYS_TIMERFD_GETTIME, unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_FCNTL,

	unix.SYS_OPENAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_STATFS,
	unix.SYS_FSTATFS, unix.SYS_LSEEK, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV,
	unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_MKDIRAT,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FTRUNCATE,
	unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FLOCK, unix.SYS_FCHMOD,
	unix.SYS_FCHMODAT, unix.SYS_UTIMENSAT, unix.SYS_UMASK, unix.SYS_FADVISE64, unix.SYS_CLOSE_RANGE,

	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_SIGALTSTACK, unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RESTART_SYSCALL, unix.SYS_GETPID, unix.SYS_GETPPID,
	unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETGROUPS,
	unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_GETPRIORITY, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_SYSINFO,
	unix.SYS_UNAME, unix.SYS_PRLIMIT64, unix.SYS_GETRLIMIT, unix.SYS_CAPGET, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,

	// The init stage becomes the program by it. A later call starts no process: it replaces the
	// only one, behind the same walls.
	unix.SYS_EXECVE,
}, olderCalls...)
