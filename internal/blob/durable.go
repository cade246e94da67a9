package blob

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
)

// syncParents syncs folder name's parents, up to the first that is known to be durable. dir is the
// open folder. Another process may have created one without having synced it yet. Once per folder
// suffices, since folders are never moved. A deleted folder, such as a purged project's, is not
// created again; if it is, it mostly has another inode.
func (s *folder) syncParents(name string, dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}

	if s.isSynced(name, info) {
		return nil
	}

	infos := map[string]fs.FileInfo{}
	for at := name; at != "." && !s.isSynced(at, info); at = path.Dir(at) {
		if err := s.syncFolder(path.Dir(at)); err != nil {
			return err
		}

		infos[at] = info

		if info, err = s.statFolder(path.Dir(at)); err != nil {
			return err
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for other := range s.durable {
		if len(s.durable) < maxSyncedFolders {
			break
		}
		delete(s.durable, other) // an arbitrary one
	}

	maps.Copy(s.durable, infos)
	return nil
}

func (s *folder) isSynced(name string, info fs.FileInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	previous := s.durable[name]
	return previous != nil && os.SameFile(previous, info)
}

// syncFolder makes a folder's entries durable.
func (s *folder) syncFolder(name string) error {
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}

	return errors.Join(s.sync(f), f.Close())
}
