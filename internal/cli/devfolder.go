//go:build unix

package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/socle-dev/socle/internal/config"
)

// devFolders is this machine's record of the folders that socle dev made: the mark in each. A
// repository may bring such a folder, with links to files of the developer, or with data whose
// settings of PostgreSQL run programs.
type devFolders struct {
	Marks []string `json:"marks"`
}

// devMark is the file in a folder that has its mark.
const devMark = "mark"

// claimDevFolder creates the folder of a server. It fails for one that socle dev did not make on
// this machine, unless it is empty.
func (e environment) claimDevFolder(folder string) error {
	data, ok := e.dataFolder() // not that of the log-in, which may be in the folder itself
	if !ok {
		return errors.New("socle dev keeps a record of its folders: set HOME or XDG_DATA_HOME")
	}

	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	foreign := fmt.Errorf("socle dev did not make %s on this machine, so it may run programs of whoever did: look at it, "+
		"and remove it: rm -r %s", shortPath(folder), config.ShellWord(shortPath(folder)))
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
		return errors.Join(err, foreign)
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()

	var made devFolders
	return withStored(filepath.Join(data, "dev.json"), &made, func() error {
		if slices.Contains(made.Marks, readDevMark(root)) {
			return nil
		}

		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return foreign
		}

		mark := rand.Text()
		made.Marks = append(made.Marks, mark)

		return errors.Join(root.Chmod(".", 0o700), root.WriteFile(devMark, []byte(mark), 0o600))
	})
}

// readDevMark returns the mark of a folder; "": it has none.
func readDevMark(folder *os.Root) string {
	info, err := folder.Lstat(devMark)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}

	text, _ := folder.ReadFile(devMark) // "": none
	return string(text)
}
