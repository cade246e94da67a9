package blob

import (
	"errors"
	"syscall"
)

// space returns the file system's free and total bytes.
func (s *folder) space() (free, total int64, err error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return 0, 0, err
	}

	var st syscall.Statfs_t
	if err := errors.Join(syscall.Fstatfs(int(dir.Fd()), &st), dir.Close()); err != nil {
		return 0, 0, err
	}

	block := int64(st.Bsize)
	return int64(st.Bavail) * block, int64(st.Blocks) * block, nil
}
