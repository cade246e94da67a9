package blob

import (
	"fmt"
	"syscall"
)

// Space returns how many bytes the store's file system has left for it, and how many it has in all.
func (s *Store) Space() (free, total int64, err error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return 0, 0, unavailable(err)
	}
	defer dir.Close()
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(dir.Fd()), &st); err != nil {
		return 0, 0, fmt.Errorf("space of the storage folder: %w", err)
	}
	block := int64(st.Bsize)
	return int64(st.Bavail) * block, int64(st.Blocks) * block, nil
}
