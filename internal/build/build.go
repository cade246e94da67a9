// Package build knows this program's version.
package build

import (
	"cmp"
	"runtime/debug"
)

// stamp is a release's version, set by the linker (scripts/release.sh).
var stamp string

// Version returns the release's version. For other builds it returns the version that the go
// command derived from the tag or commit, or "devel".
func Version() string {
	if stamp != "" {
		return stamp
	}

	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return "devel"
	}

	return cmp.Or(info.Main.Version, "devel")
}
