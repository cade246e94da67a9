package cli

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reserved are flags that commands have beside parameters and members.
var reserved = []string{"url", "project", "json", "help", "body", "output", "all", "yes", "wait", "follow"}

// flagName returns the flag of a parameter or member. Things go by their names, so --container-uuid
// is --container, and --role-id is --role, unless that is another flag.
func (r *remote) flagName(name string) string {
	long := kebab(name)
	switch other := renamedFlags[r.ID][name]; {
	case other != "":
		return other
	case isRole(name):
		return "role"
	}

	short, ok := strings.CutSuffix(long, "-uuid")
	if several, plural := strings.CutSuffix(long, "-uuids"); plural {
		short, ok = several+"s", true
	}
	if !ok || slices.Contains(reserved, short) {
		return long
	}

	for _, p := range r.queries {
		if kebab(p.Name) == short {
			return long
		}
	}
	if slices.ContainsFunc(r.members, func(m string) bool { return kebab(m) == short }) {
		return long
	}

	return short
}

// renamedFlags are flags whose names say more than those of their parameters.
var renamedFlags = map[string]map[string]string{
	"listRequests": {"endUserUuid": "user", "userUuid": "member"},
}

// acceptLongNames lets a command take the names of parameters and members as flags, too.
func (r *remote) acceptLongNames(cmd *cobra.Command) {
	names := map[string]string{}
	for _, p := range r.queries {
		names[kebab(p.Name)] = r.flagName(p.Name)
	}
	for _, m := range r.members {
		names[kebab(m)] = r.flagName(m)
	}

	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if flag, ok := names[name]; ok {
			name = flag
		}
		return pflag.NormalizedName(name)
	})
}

// roles are the names of the roles of members, by number.
var roles = map[string]string{"1": "administrator", "2": "owner", "3": "admin", "4": "developer", "5": "viewer"}

// roleName returns the name of a role, "" for another number.
func roleName(number string) string { return roles[number] }

// roleNumber returns the number of a role that is given by name or number. Names are those of least
// and higher numbers.
func roleNumber(text string, least int) (string, error) {
	for number, name := range roles {
		if strings.EqualFold(name, text) && slices.Contains(roleNames(least), name) {
			return number, nil
		}
	}

	if _, err := strconv.Atoi(text); err != nil {
		return "", errors.New("takes " + strings.Join(roleNames(least), ", "))
	}

	return text, nil
}

// roleNames returns the names of roles from a number on, the one with most rights first.
func roleNames(least int) []string {
	var names []string
	for _, number := range slices.Sorted(maps.Keys(roles)) {
		if n, _ := strconv.Atoi(number); n >= least {
			names = append(names, roles[number])
		}
	}

	return names
}

// isRole reports whether a parameter or member is the number of a role.
func isRole(name string) bool { return name == "role_id" || name == "roleId" }
