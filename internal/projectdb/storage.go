package projectdb

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The tables storage.buckets and storage.objects belong to the project's owner, who creates their
// policies. They have no rows of their own: the rows in their children, storage.containers and
// storage.files, belong to the platform. Event triggers refuse any other DDL on the two tables.
// Triggers refuse any row change through them, except the owner's on storage.buckets: they check it
// and carry it out on storage.containers.

// PolicyTables are the tables in schema storage whose policies belong to the project.
var PolicyTables = []string{"buckets", "objects"}

// Questions returns a pool for the request login, which may assume the roles anon and
// authenticated. Package actor resets the sessions.
func (p *Project) Questions() *pgxpool.Pool { return p.pool(questionsPool) }

// IsPolicyTable reports whether a table has project policies and no rows of its own.
func IsPolicyTable(schema, table string) bool {
	return (schema == "storage" && slices.Contains(PolicyTables, table)) ||
		(schema == "realtime" && table == "messages")
}
