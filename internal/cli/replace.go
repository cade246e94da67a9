package cli

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile replaces a file of a folder when its new text is complete, so that a full disk or an
// interrupted command leaves the former one. It keeps the mode, and replaces a link itself.
func replaceFile(folder *os.Root, name, text string) error {
	mode := fs.FileMode(0o666) // but for the umask
	former, err := folder.Stat(name)
	if err == nil {
		mode = former.Mode().Perm()
	}

	temporary := name + "." + rand.Text()[:8]
	f, err := folder.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return writeFailure(name, err)
	}

	_, err = f.WriteString(text)
	if former != nil {
		err = errors.Join(err, f.Chmod(mode)) // despite the umask
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = folder.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(writeFailure(name, err), folder.Remove(temporary))
	}

	return nil
}

// replacePath replaces a file that the caller names, like [replaceFile]. Of a link, it replaces the
// file.
func replacePath(path, text string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}

	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()

	return replaceFile(folder, filepath.Base(path), text)
}
