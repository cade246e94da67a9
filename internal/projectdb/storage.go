package projectdb

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The tables storage.buckets and storage.objects belong to the project's owner, who creates their
// policies. They have no rows of their own: those of their children, storage.containers and
// storage.files, belong to the platform. Event triggers refuse any other DDL on the two tables.
// Triggers refuse any change of rows through them, but for the owner's on storage.buckets: they
// check it and carry it out on storage.containers.

// PolicyTables are the tables of schema storage whose policies belong to the project.
var PolicyTables = []string{"buckets", "objects"}

// Questions returns a pool of the request login, which may assume the roles anon and authenticated.
// Package actor resets its sessions.
func (p *Project) Questions() *pgxpool.Pool { return p.pool(questionsPool) }

// IsPolicyTable reports whether a table has policies of the project and no rows of its own.
func IsPolicyTable(schema, table string) bool {
	return (schema == "storage" && slices.Contains(PolicyTables, table)) ||
		(schema == "realtime" && table == "messages")
}
