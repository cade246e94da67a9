package account

import "socle/internal/platform"

// Role is a user's role in an organization or in the whole install.
type Role = platform.Role

// Roles, as users see them in roleId.
const (
	Administrator = platform.Administrator
	Owner         = platform.Owner
	Admin         = platform.Admin
	Developer     = platform.Developer
	Viewer        = platform.Viewer
)
