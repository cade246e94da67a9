// Package tenant is a project at run time: its database and roles from creation to
// deletion, and its pools, opened on demand and closed when idle. It leaves to others what the
// database holds, and who may see it.
package tenant

import (
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"

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

// login is one of the accounts that connect to a project's database. None can become another.
type login string

const (
	trusted login = ""        // the platform's own login
	owner   login = "owner"   // the project's owner: DDL and SQL of users
	request login = "request" // may become anon or authenticated
	service login = "service" // may become service_role
	dump    login = "dump"    // reads everything, for backups, the sums of passwords included: only pg_dump gets it
)

// projectLogins are the logins that are made for each project.
var projectLogins = []login{owner, request, service, dump}

// database returns the name of a project's database. It never leaves the server.
func database(project uuid.UUID) string { return "socle_" + hexOf(project) }

// role returns the name of a project's login.
func (l login) role(project uuid.UUID) string { return "socle_" + hexOf(project) + "_" + string(l) }

func hexOf(id uuid.UUID) string { return strings.ReplaceAll(id.String(), "-", "") }

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
	c.Database = database(project)
	if l != trusted {
		c.User = l.role(project)
		c.Password = r.password(c.User)
	}
	return c
}
