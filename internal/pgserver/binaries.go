package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minVersion is the oldest PostgreSQL major version that Socle supports.
const minVersion = 15

// programs are the binaries that Socle runs; a directory must contain all of them.
var programs = []string{"postgres", "initdb", "pg_dump", "pg_restore"}

// binaryDirs are the directories in which packages install each major version's binaries.
var binaryDirs = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PostgreSQL's own RPMs
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
}

// Binaries are one installed PostgreSQL's programs.
type Binaries struct {
	Dir     string
	Version int // as in server_version_num: 150018 for 15.18
}

// Path returns the full path to a program such as pg_dump.
func (b Binaries) Path(name string) string { return filepath.Join(b.Dir, name) }

// Major returns the major version.
func (b Binaries) Major() int { return b.Version / 10000 }

// VersionError is the failure to start PostgreSQL on data that another major version created.
type VersionError struct {
	Data      int      // data version
	Binaries  Binaries // that were to run
	Installed []Binaries
}

func (e *VersionError) Error() string {
	var versions []string
	keep := fmt.Sprintf("install PostgreSQL %d", e.Data)
	for _, b := range e.Installed {
		versions = append(versions, fmt.Sprintf("%d in %s", b.Major(), b.Dir))
		if b.Major() == e.Data {
			keep = "set SOCLE_POSTGRES_BIN=" + b.Dir
		}
	}

	upgrade := ""
	if e.Binaries.Major() > e.Data {
		upgrade = fmt.Sprintf(", or run socle upgrade-postgres to upgrade the data to %d", e.Binaries.Major())
	}

	return fmt.Sprintf("the data directory was created by PostgreSQL %d, but %s contains the binaries of %d "+
		"(installed: %s): %s to keep using %d%s", e.Data, e.Binaries.Dir, e.Binaries.Major(),
		strings.Join(versions, ", "), keep, e.Data, upgrade)
}

// Installed returns the newest usable PostgreSQL for each major version in the standard locations,
// the newest first.
func Installed() []Binaries {
	var all []Binaries
	for _, dir := range candidates() {
		if b, err := inspect(dir); err == nil {
			all = append(all, b)
		}
	}

	slices.SortStableFunc(all, func(a, b Binaries) int { return cmp.Compare(b.Version, a.Version) })
	return slices.CompactFunc(all, func(a, b Binaries) bool { return a.Major() == b.Major() })
}

// Find returns the PostgreSQL in dir. If dir is empty, it returns the first usable one of: the
// directory that pg_config reports, the newest version in the packages' directories, PATH. The
// error says what to install.
func Find(dir string) (Binaries, error) {
	if dir != "" {
		b, err := inspect(dir)
		if err != nil {
			return Binaries{}, fmt.Errorf("no usable PostgreSQL in %s: %w", dir, err)
		}

		return b, nil
	}

	var reasons []string
	for _, dir := range candidates() {
		b, err := inspect(dir)
		if err == nil {
			return b, nil
		}

		if !errors.Is(err, os.ErrNotExist) {
			reasons = append(reasons, dir+": "+err.Error())
		}
	}

	var details string
	if len(reasons) > 0 {
		details = " (" + strings.Join(reasons, "; ") + ")"
	}

	return Binaries{}, fmt.Errorf("no server binaries of PostgreSQL %d or newer found%s: install them "+
		"(Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql@17) "+
		"or set SOCLE_POSTGRES_BIN to their directory", minVersion, details)
}

// candidates returns the directories to search, best first.
func candidates() []string {
	var dirs []string
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}

	var matched []string
	for _, pattern := range binaryDirs {
		matches, _ := filepath.Glob(pattern) // fails only on a bad pattern
		matched = append(matched, matches...)
	}

	slices.SortStableFunc(matched, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	dirs = append(dirs, matched...)
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}

	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// major returns the version in a directory's name. A wrong guess affects only the order.
func major(dir string) int {
	n, _ := strconv.Atoi(digits.FindString(dir))
	return n
}

// inspect returns the PostgreSQL in dir, or an error that says why it is unusable: os.ErrNotExist
// if a program is missing.
func inspect(dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, err
	}

	b := Binaries{Dir: dir}
	for _, name := range programs {
		if _, err := os.Stat(b.Path(name)); err != nil {
			return Binaries{}, err
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	out, err := exec.CommandContext(ctx, b.Path("postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("run postgres --version: %w", err)
	}

	if b.Version, err = parseVersion(string(out)); err != nil {
		return Binaries{}, err
	}

	if b.Version/10000 < minVersion {
		return Binaries{}, fmt.Errorf("PostgreSQL %d is older than %d", b.Version/10000, minVersion)
	}

	return b, nil
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// parseVersion parses "postgres (PostgreSQL) 15.18 (Debian …)" to 150018. A beta such as 17beta1
// has minor version 0.
func parseVersion(text string) (int, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("unknown version %q", strings.TrimSpace(text))
	}

	major, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, fmt.Errorf("unknown version %q", strings.TrimSpace(text))
	}

	minor, _ := strconv.Atoi(m[2]) // absent in betas

	if major < 10 {
		return major * 10000, nil // 9.6.24: only needs to compare as too old
	}

	return major*10000 + minor, nil
}
