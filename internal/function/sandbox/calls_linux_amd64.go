package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// olderCalls are calls that newer machines have under another name only.
var olderCalls = []uint32{
	unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_CREATE, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_OPEN, unix.SYS_STAT,
	unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_PIPE, unix.SYS_DUP2,
	unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_CHMOD, unix.SYS_ARCH_PRCTL,
	unix.SYS_EVENTFD, unix.SYS_TIME, unix.SYS_GETPGRP, unix.SYS_LINK, unix.SYS_SYMLINK,
}
