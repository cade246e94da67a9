package projectdb

import (
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

//go:embed migrations/*.sql
var files embed.FS

// migrations are applied to every project database.
var migrations = func() fs.FS {
	dir, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err)
	}

	return dir
}()

// Migrations returns the project database migrations.
func Migrations() fs.FS { return migrations }

// Version returns the newest project database migration.
func Version() int64 {
	versions, err := pg.Versions(migrations)
	if err != nil {
		panic(err)
	}

	return versions[len(versions)-1]
}

// Schema is the platform's own schema in every project database.
const Schema = namespace.Socle

// Publication names the tables whose changes clients follow. It belongs to the project's owner.
const Publication = "supabase_realtime"

// IsServiceObject reports whether a dump entry, with its owner, is a platform object in one of
// [namespace.Services], or such a schema. owner is the owner's login.
func IsServiceObject(desc, schema, tag, entryOwner, owner string) bool {
	if schema == "" {
		schema = strings.TrimPrefix(tag, "SCHEMA ")
		if desc != "SCHEMA" && schema == tag {
			return false
		}
	}

	return slices.Contains(namespace.Services, schema) && entryOwner != owner
}

// platformTriggers is the name prefix for the platform's triggers on auth.users.
const platformTriggers = "socle_"

// IsUserObject reports whether a dump entry is a project object in a platform schema, or a comment
// on one: a trigger on auth.users, or a policy on storage.buckets, storage.objects or
// realtime.messages.
func IsUserObject(desc, namespace, tag string) bool {
	kind, ok := map[string]string{"auth": "TRIGGER", "storage": "POLICY", "realtime": "POLICY"}[namespace]
	_, name, _ := strings.Cut(tag, " ")
	if desc == "TRIGGER" && (strings.HasPrefix(name, platformTriggers) || !strings.HasPrefix(tag, "users ")) {
		return false
	}

	return ok && (desc == kind || (desc == "COMMENT" && strings.HasPrefix(tag, kind+" ")))
}

// JWTSecret derives the key that signs the tokens for a project's own users from the install's
// secret, in hexadecimal.
func (r *Registry) JWTSecret(project uuid.UUID) string {
	return hex.EncodeToString(token.Derive(r.secret, "JWT secret of project "+project.String()))
}

// S3Secret derives the secret for a project's S3 key from the install's secret.
func (r *Registry) S3Secret(project, key uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(
		token.Derive(r.secret, "S3 key "+key.String()+" of project "+project.String()))
}

// ScheduleSecret derives the secret that signs the calls of a schedule's endpoint from the
// install's secret, in the form of Standard Webhooks.
func (r *Registry) ScheduleSecret(project uuid.UUID, job int64) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(
		token.Derive(r.secret, fmt.Sprintf("schedule %d of project %s", job, project)))
}

// WebhookKey returns the key that seals the secrets of a project's webhooks.
func (p *Project) WebhookKey() []byte {
	return token.Derive(p.registry.secret, "webhooks of project "+p.UUID.String())
}

// BackupKey returns the backup encryption key: 32 bytes derived from the install's secret.
func (r *Registry) BackupKey() []byte { return token.Derive(r.secret, "backups") }

// AuditKey returns the audit log key.
func (r *Registry) AuditKey() []byte { return token.Derive(r.secret, audit.KeyPurpose) }

// FileKey returns the key for a project's file in blob storage.
func FileKey(project, blob uuid.UUID) string {
	id := blob.String()
	return "projects/" + project.String() + "/files/" + id[:2] + "/" + id
}
