package outbound

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// functionScheme begins the addresses of a project's own functions: functions://NAME, with a path
// if there is one.
const functionScheme = "functions"

var functionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// IsFunctionName reports whether a function can have a name.
func IsFunctionName(name string) bool { return functionName.MatchString(name) }

// IsFunction reports whether an address is that of a function.
func IsFunction(u *url.URL) bool { return u.Scheme == functionScheme }

// NamesFunction reports whether the text of an address is meant to be that of a function.
func NamesFunction(text string) bool { return strings.HasPrefix(text, functionScheme+":") }

// CheckAddress fails unless text is the address of an endpoint: a URL as [CheckURL] wants it, or
// that of a function of the project, which may not exist yet.
func CheckAddress(text string) error {
	if !NamesFunction(text) {
		return CheckURL(text)
	}

	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !IsFunctionName(u.Host) {
		return fmt.Errorf("must be %s:// and the name of a function", functionScheme)
	}
	if strings.Contains("/"+u.EscapedPath()+"/", "/../") {
		return errors.New("must have no path that leads upwards")
	}

	return nil
}
