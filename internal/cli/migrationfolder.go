package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/migration/file"
	"github.com/socle-dev/socle/internal/repository"
)

// migration is a migration of a folder or of a project.
type migration struct {
	Version    string `json:"version"`
	Name       string `json:"name"`
	SQL        string `json:"sql"`
	Checksum   string `json:"checksum"`
	path       string
	AppliedAt  time.Time `json:"-"`
	incomplete bool
}

// migrationFolder are the files of a folder.
type migrationFolder struct {
	files   []migration // in the order of their versions
	skipped []string    // paths of SQL files whose names have no version
}

// prismaFile is the file of a migration of Prisma, in a folder of its own.
const prismaFile = "migration.sql"

// readMigrations reads the migrations of a folder; none of a missing folder. It fails if two have
// the same version, or if one is a link out of the repository; "": a link may lead anywhere.
func readMigrations(dir, repo string) (migrationFolder, error) {
	var f migrationFolder
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}

	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			path = filepath.Join(path, prismaFile)
			if _, err := os.Stat(path); err != nil { // another folder
				continue
			}
		case !strings.HasSuffix(name, ".sql") || name == seedFile:
			continue
		}

		version, rest, ok := file.ParseName(strings.TrimSuffix(name, ".sql"))
		if !ok {
			f.skipped = append(f.skipped, path)
			continue
		}

		if repo != "" && !repository.Contains(repo, path) {
			return f, repository.Problems{{File: filepath.ToSlash(path), Text: "is no file in the repository"}}
		}

		m, err := readMigration(path, version, rest)
		if err != nil {
			return f, err
		}

		f.files = append(f.files, m)
	}

	slices.SortStableFunc(f.files, func(a, b migration) int { return file.Compare(a.Version, b.Version) })
	for i, m := range f.files {
		if i > 0 && f.files[i-1].Version == m.Version {
			return f, fmt.Errorf("%s: has the same version as %s", m.path, f.files[i-1].path)
		}
	}

	return f, nil
}

func readMigration(path, version, name string) (migration, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe waits for its writer
		return migration{}, fmt.Errorf("%s: is no file", path)
	}

	raw, err := os.ReadFile(path)
	if err != nil {
		return migration{}, err
	}

	if !utf8.Valid(raw) {
		return migration{}, fmt.Errorf("%s: is no text in UTF-8", path)
	}

	text := strings.TrimPrefix(string(raw), "\ufeff") // byte order mark of an editor on Windows
	text = strings.ReplaceAll(text, "\r\n", "\n")     // line ends from a checkout there
	return migration{Version: version, Name: name, SQL: text, Checksum: checksum(text), path: path}, nil
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newName matches the names of files that this program writes.
var newName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// writeMigration writes a new file and returns its path.
func writeMigration(dir, version, name, text string) (string, error) {
	if !newName.MatchString(name) {
		return "", badName(name)
	}

	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}

	path := filepath.Join(dir, version+"_"+name+".sql")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}

	_, err = f.WriteString(text)
	return path, errors.Join(err, f.Close())
}

func badName(name string) error {
	return fmt.Errorf("%w: the name %q has other characters than letters, digits, _ and -", errUsage, name)
}

const versionLayout = "20060102150405"

// nextVersion returns the present time as a version, or the version after that of the last file if
// the present time does not sort after it: because that is later, or a number.
func nextVersion(files []migration) (string, error) {
	version := time.Now().UTC().Format(versionLayout)
	if len(files) == 0 {
		return version, nil
	}

	last := files[len(files)-1]
	if file.Compare(version, last.Version) > 0 {
		return version, nil
	}
	if at, err := time.Parse(versionLayout, last.Version); err == nil {
		return at.Add(time.Second).Format(versionLayout), nil
	}

	next, ok := file.Next(last.Version)
	if !ok {
		return "", fmt.Errorf("no version sorts after that of %s: give the files longer versions, such as times", last.path)
	}

	return next, nil
}
