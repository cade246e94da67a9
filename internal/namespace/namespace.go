// Package namespace names the schemas that are the platform's in the database of every project.
package namespace

import (
	"slices"
	"strings"
)

// Socle is the platform's own schema.
const Socle = "socle"

// Platform are the schemas that are always the platform's.
var Platform = []string{"auth", "forms", "realtime", Socle, "storage"}

// Services are the platform's further schemas, with the functions and tables that SQL for Supabase
// uses. A project can have a schema of its own with that name: then it belongs to the project's
// owner, as does everything in it. The tables of queues in pgmq are always the owner's.
var Services = []string{"cron", "net", "pgmq", "pgmq_public", "supabase_functions", "vault"}

// IsReserved reports whether a schema is PostgreSQL's or always the platform's.
func IsReserved(schema string) bool {
	return strings.HasPrefix(schema, "pg_") || schema == "information_schema" || slices.Contains(Platform, schema)
}

// List returns schemas as the list of an IN condition in SQL.
func List(schemas ...string) string { return "('" + strings.Join(schemas, "', '") + "')" }
