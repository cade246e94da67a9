//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// scaffold is the folder on which the new root is mounted. It must exist.
const scaffold = "/tmp"

const (
	rootSize   = 8 << 20 // bytes of the root, which has the given files
	socketSize = 64 << 10
	maxInodes  = 4096

	mountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
)

// tree is a file outside, as a mount that is not attached yet.
type tree struct {
	file   int
	target string
}

// openTrees returns read-only mounts of files outside.
func openTrees(binds []bind) ([]tree, error) {
	trees := make([]tree, len(binds))
	for i, b := range binds {
		file, err := unix.OpenTree(unix.AT_FDCWD, b.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", filepath.Base(b.Source), err)
		}

		readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(file, "", unix.AT_EMPTY_PATH, readOnly); err != nil {
			return nil, fmt.Errorf("protect %s: %w", filepath.Base(b.Source), err)
		}

		trees[i] = tree{file, b.Target}
	}

	return trees, nil
}

// buildRoot makes a new root and leaves the old one behind.
func buildRoot(s spec, trees []tree) error {
	unix.Umask(0o022)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := mountMemory(scaffold, rootSize); err != nil {
		return err
	}

	for _, t := range trees {
		if err := attach(t); err != nil {
			return err
		}
	}
	for _, f := range s.Files {
		if err := writeFile(filepath.Join(scaffold, f.Path), f.Content); err != nil {
			return err
		}
	}

	for _, m := range []struct {
		path string
		size int64
	}{{"/tmp", s.Limits.Temporary}, {"/run", socketSize}} {
		if err := os.Mkdir(scaffold+m.path, 0o700); err != nil {
			return err
		}
		if err := mountMemory(scaffold+m.path, m.size); err != nil {
			return err
		}
	}

	// subset=pid leaves out all that is not of processes, and needs no visible /proc outside.
	if err := os.Mkdir(scaffold+"/proc", 0o700); err != nil {
		return err
	}
	if err := unix.Mount("proc", scaffold+"/proc", "proc", mountFlags, "subset=pid,hidepid=invisible"); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}

	return enter(scaffold)
}

// enter makes a folder the root, and what was the root unreachable.
func enter(folder string) error {
	if err := unix.Chdir(folder); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old root then lies on the new one
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}

	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, readOnly); err != nil {
		return fmt.Errorf("protect the root: %w", err)
	}
	if err := unix.Sethostname([]byte("function")); err != nil {
		return fmt.Errorf("set the name of the host: %w", err)
	}

	return nil
}

// mountMemory mounts an empty folder of a bounded size.
func mountMemory(path string, size int64) error {
	options := "mode=0755,nr_inodes=" + strconv.Itoa(maxInodes) + ",size=" + strconv.FormatInt(size, 10)
	if err := unix.Mount("tmpfs", path, "tmpfs", mountFlags, options); err != nil {
		return fmt.Errorf("mount a folder in memory: %w", err)
	}

	return nil
}

func attach(t tree) error {
	target := filepath.Join(scaffold, t.target)
	if err := writeFile(target, nil); err != nil {
		return err
	}
	if err := unix.MoveMount(t.file, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach %s: %w", t.target, err)
	}

	return unix.Close(t.file)
}

// writeFile creates a file with its folders.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	return os.WriteFile(path, content, 0o444)
}
