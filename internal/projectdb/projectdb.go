package projectdb

import (
	"embed"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
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

// Migrations returns the migrations of project databases.
func Migrations() fs.FS { return migrations }

// Version returns the newest migration of project databases.
func Version() int64 {
	versions, err := pg.Versions(migrations)
	if err != nil {
		panic(err)
	}

	return versions[len(versions)-1]
}

// Schema is the platform's own schema in every project database.
const Schema = "socle"

// Publication names the tables whose changes clients follow. It belongs to the project's owner.
const Publication = "supabase_realtime"

// Schemas are the platform's schemas in every project database.
var Schemas = []string{"auth", "forms", "realtime", Schema, "storage"}

// ServiceSchemas are further schemas of the platform, with what SQL for Supabase calls. A project
// can have a schema of its own of that name: then it belongs to the project's owner, as does
// everything in it.
var ServiceSchemas = []string{"cron", "net", "vault"}

// IsServiceObject reports whether an entry of a dump, with its owner, is an object of the platform
// in one of [ServiceSchemas], or such a schema. owner is the login of the project's owner.
func IsServiceObject(desc, namespace, tag, entryOwner, owner string) bool {
	if namespace == "" {
		namespace = strings.TrimPrefix(tag, "SCHEMA ")
		if desc != "SCHEMA" && namespace == tag {
			return false
		}
	}

	return slices.Contains(ServiceSchemas, namespace) && entryOwner != owner
}

// platformTriggers is the prefix of the names of the platform's triggers on auth.users.
const platformTriggers = "socle_"

// IsUserObject reports whether an entry of a dump is an object of the project in a schema of the
// platform, or a comment on one: a trigger on auth.users, or a policy of storage.buckets,
// storage.objects or realtime.messages.
func IsUserObject(desc, namespace, tag string) bool {
	kind, ok := map[string]string{"auth": "TRIGGER", "storage": "POLICY", "realtime": "POLICY"}[namespace]
	_, name, _ := strings.Cut(tag, " ")
	if desc == "TRIGGER" && (strings.HasPrefix(name, platformTriggers) || !strings.HasPrefix(tag, "users ")) {
		return false
	}

	return ok && (desc == kind || (desc == "COMMENT" && strings.HasPrefix(tag, kind+" ")))
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

// BackupKey returns the encryption key of backups: 32 bytes derived from the secret of the install.
func (r *Registry) BackupKey() []byte { return token.Derive(r.secret, "backups") }

// AuditKey returns the key of audit logs.
func (r *Registry) AuditKey() []byte { return token.Derive(r.secret, audit.KeyPurpose) }

// FileKey returns the key of a project's file in blob storage.
func FileKey(project, blob uuid.UUID) string {
	id := blob.String()
	return "projects/" + project.String() + "/files/" + id[:2] + "/" + id
}
