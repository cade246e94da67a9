// Package file knows migration files as tools write them: their names, their order, and the part
// that is to run. It reads no file.
package file

import (
	"regexp"
	"strings"
)

var (
	// names are the name forms: a version, then anything. The second one has a UUID.
	names = []*regexp.Regexp{
		regexp.MustCompile(`(?s)^([0-9]{1,100})_(.*)$`),
		regexp.MustCompile(`(?s)^([0-9]{14})-(.+)$`),
	}

	versionForm = regexp.MustCompile(`^[0-9]{1,100}$`)
)

// MaxName is a migration name's maximum size in bytes.
const MaxName = 250

// ParseName splits a file name, without .sql, or a folder name into the migration's version and
// name. The version is all digits at the start, even if they are no time. The name can be empty.
// ParseName reports false for a name in another form.
func ParseName(name string) (version, rest string, ok bool) {
	for _, form := range names {
		if m := form.FindStringSubmatch(name); m != nil {
			return m[1], m[2], ValidName(m[2])
		}
	}

	return "", "", false
}

// ValidVersion reports whether a version is digits.
func ValidVersion(version string) bool { return versionForm.MatchString(version) }

// ValidName reports whether a migration may have a name: one line, which can be empty.
func ValidName(name string) bool {
	return len(name) <= MaxName && strings.ToValidUTF8(name, "") == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Compare orders versions as a folder orders their file names, in which order the tools apply them:
// 20240105_a.sql stands between 20240104120000_b.sql and 20240106120000_c.sql. As numbers, all days
// would precede all seconds. If one version begins with the other, the longer one is first, since a
// digit sorts before the underscore.
func Compare(a, b string) int { return strings.Compare(a+"_", b+"_") }

// Next returns the version after another one: the same number of digits, plus one. It reports
// false if there is none.
func Next(version string) (next string, ok bool) {
	digits := []byte(version)
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] < '9' {
			digits[i]++
			return string(digits), true
		}

		digits[i] = '0'
	}

	return "", false
}
