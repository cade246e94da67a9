// Package tenant is a project at run time: its database and roles from creation to
// deletion, and its pools, opened on demand and closed when idle. It leaves to others what the
// database holds, and who may see it.
package tenant

import (
	"embed"
	"encoding/hex"
	"io/fs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/token"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations is what every project database starts with.
var migrations = func() fs.FS {
	dir, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err)
	}

	return dir
}()

// Schema is the platform's schema in every project database.
const Schema = "socle"

// password returns a login's password. It follows from the secret of the instance, so that no
// copy of it is kept anywhere.
func (r *Registry) password(role string) string {
	return hex.EncodeToString(token.Derive(r.secret, "database role "+role))
}

// JWTSecret returns the text that tokens of a project's own users are signed with. It follows from the secret of
// the instance, as passwords do.
func (r *Registry) JWTSecret(project uuid.UUID) string {
	return hex.EncodeToString(token.Derive(r.secret, "JWT secret of project "+project.String()))
}

// config returns how to connect to a project's database under a login.
func (r *Registry) config(project uuid.UUID, l login) *pgx.ConnConfig {
	c := r.base.ConnConfig.Copy()
	c.Database = r.Database(project)

	if l != trusted {
		c.User = r.login(project, l)
		c.Password = r.password(c.User)
	}

	return c
}
