// Package sandbox runs a program of a tenant behind walls that the kernel keeps.
//
// The server starts its own binary again in new namespaces. That process, the init stage, builds
// the walls, gives up every right and becomes the program:
//
//	server                      init stage (PID 1)                  program (PID 1)
//	  │ clone: user, mount, PID,
//	  │ network, IPC, UTS, cgroup
//	  ├── spec ─────────────────► mounts, limits, proxy's listener
//	  │ ◄── listener, folder ──── pivot_root, capabilities, seccomp
//	  │ ◄── end of the socket ─── execve ───────────────────────────► runs
//	  ├── Dial ─────────────────────────────────────────────────────► /run/socket
//	  │ ◄── Accept ──────────────────────────────────────────────────  127.0.0.1:3128
//
// Inside there is a read-only root with the program, its libraries and the given files, a small
// /tmp, a network that has only the loopback interface, and no other process. As root each sandbox
// has a user ID of its own; otherwise it has the server's, which owns nothing inside.
//
// Nothing falls back: a wall that can't be built is an error of [Start].
//
// What the program says and does is of no concern here: package runtime has the program that runs
// functions, package function the limits over time.
package sandbox
