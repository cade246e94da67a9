// Package projectdb manages the databases of projects: it provisions, pauses, swaps and removes
// each database with its logins, and opens connection pools to it on demand.
//
// It leaves the contents of a database to packages schema, object and form, rows of the platform
// database to package platform, and authorization to package api.
package projectdb

import (
	"embed"
	"encoding/base64"
	"encoding/hex"
	"io/fs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/token"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are applied to every project database.
var migrations = func() fs.FS {
	dir, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err)
	}

	return dir
}()

// Schema is the platform's schema in every project database.
const Schema = "socle"

// password derives the password of a login from the secret of the install, so that no copy of it is
// stored anywhere.
func (r *Registry) password(role string) string {
	return hex.EncodeToString(token.Derive(r.secret, "database role "+role))
}

// JWTSecret derives the key that signs the tokens of a project's own users from the secret of the
// install, in hexadecimal.
func (r *Registry) JWTSecret(project uuid.UUID) string {
	return hex.EncodeToString(token.Derive(r.secret, "JWT secret of project "+project.String()))
}

// S3Secret derives the secret of a project's key for the S3 protocol from the secret of the
// install.
func (r *Registry) S3Secret(project, key uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(
		token.Derive(r.secret, "S3 key "+key.String()+" of project "+project.String()))
}

// config returns the configuration for connections to a project's database under a login.
func (r *Registry) config(project uuid.UUID, l login) *pgx.ConnConfig {
	c := r.base.ConnConfig.Copy()
	c.Database = r.Database(project)

	if l == questions {
		l = request
	}
	if l != trusted {
		c.User = r.login(project, l)
		c.Password = r.password(c.User)
	}

	return c
}
