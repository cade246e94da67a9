package runtime

import (
	_ "embed"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
)

// releases has a line for each system: the system, the package @deno/… in npm's registry, its
// version and the sum of its archive. Those of Linux run functions, the others only bundle them.
// scripts/install-deno.sh reads it too.
//
//go:embed releases.txt
var releases string

// Release is an archive in npm's registry that has Deno.
type Release struct{ Package, Version, Sum string }

// CurrentRelease returns the release for this system. It reports false if there is none.
func CurrentRelease() (Release, bool) {
	for line := range strings.Lines(releases) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[0] == goruntime.GOOS+"/"+goruntime.GOARCH {
			return Release{"@deno/" + fields[1], fields[2], fields[3]}, true
		}
	}

	return Release{}, false
}

// ProgramName returns the name of Deno's file.
func ProgramName() string {
	if goruntime.GOOS == "windows" {
		return "deno.exe"
	}

	return "deno"
}

// Find returns the path of Deno in the first folder that has it, or "".
func Find(folders ...string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, ProgramName())
		if info, err := os.Stat(path); folder != "" && err == nil && info.Mode().IsRegular() {
			return path
		}
	}

	return ""
}
