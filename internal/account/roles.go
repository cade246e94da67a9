package account

import "github.com/socle-dev/socle/internal/fault"

// Role is a user's role in an organization or in the whole install. A lower number has more rights.
type Role int16

// Roles, as users see them in roleId.
const (
	Administrator Role = 1 // administrates the install
	Owner         Role = 2 // owns an organization; the roles below are in one too
	Admin         Role = 3
	Developer     Role = 4
	Viewer        Role = 5
)

// AtLeast reports whether r has at least the rights of min.
func (r Role) AtLeast(min Role) bool { return r >= Administrator && r <= min }

// Require fails with Forbidden unless r has at least the rights of min.
func (r Role) Require(min Role) error {
	if r.AtLeast(min) {
		return nil
	}
	return fault.New(fault.Forbidden, "requires the role of %s, yours is %s", min, r)
}

// String returns the role's name.
func (r Role) String() string {
	switch r {
	case Administrator:
		return "administrator"
	case Owner:
		return "owner"
	case Admin:
		return "admin"
	case Developer:
		return "developer"
	case Viewer:
		return "viewer"
	}

	return "none"
}
