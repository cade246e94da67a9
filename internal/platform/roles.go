package platform

import "socle/internal/fault"

// Role is what a user may do in an organization, or in the whole instance. The lower number may do more.
type Role int16

// The roles, as users see them in roleId.
const (
	Administrator Role = 1 // of the instance
	Owner         Role = 2 // of an organization, as the following
	Admin         Role = 3
	Developer     Role = 4
	Viewer        Role = 5
)

// AtLeast reports whether r may do what min may.
func (r Role) AtLeast(min Role) bool { return r >= Administrator && r <= min }

// Require fails with Forbidden unless r may do what least may.
func (r Role) Require(least Role) error {
	if r.AtLeast(least) {
		return nil
	}
	return fault.New(fault.Forbidden, "this needs the role of %s, and yours is %s", least, r)
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
