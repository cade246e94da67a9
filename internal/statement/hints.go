package statement

import (
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/sqllex"
)

// hint returns PostgreSQL's hint, or the reason for an error that the platform knows more of.
func hint(e *pgconn.PgError, statement sqllex.Statement) string {
	switch {
	case e.Hint != "":
		return e.Hint
	case slices.Contains([]string{"428C9", "42P10", "23514"}, e.Code) && storageInsert.MatchString(statement.Text):
		// PostgreSQL complains about a column or constraint.
		return "Objects are changed by the Storage API only: upload the file."
	case e.Code == "25001" && strings.Contains(e.Message, "CONCURRENTLY"): // active_sql_transaction
		return "Put the statement into a migration of its own, or begin the file with the line -- socle: no-transaction."
	case e.Code == "42501":
		return denialReason(e, statement.Text)
	default:
		return ""
	}
}

var (
	storageInsert = regexp.MustCompile(`(?i)\binto\s+"?storage"?\s*\.\s*"?objects\b`)
	denied        = regexp.MustCompile(`^permission denied for (schema|table|function) (\w+)$`)
)

// denialReason returns why PostgreSQL denies an object in a platform schema, "" for another object.
// PostgreSQL names a table without its schema: the statement, or that of a function, has it.
func denialReason(e *pgconn.PgError, text string) string {
	m := denied.FindStringSubmatch(e.Message)
	if m == nil {
		return ""
	}

	kind, name := m[1], m[2]
	text = strings.ToLower(text + "\n" + e.InternalQuery + "\n" + e.Where)
	for _, schema := range namespace.Platform {
		qualified := regexp.MustCompile(`\b` + schema + `"?\s*\.\s*"?` + regexp.QuoteMeta(name) + `\b`)
		switch {
		case kind == "schema" && name != schema, kind != "schema" && !qualified.MatchString(text):
			continue
		case schema == "auth" && kind == "table":
			return "auth." + name + " belongs to the platform. SQL reads auth.users and auth.identities, which have no secrets; " +
				"sessions, factors and passwords are those of the end users' API."
		case kind == "schema":
			return "The schema " + name + " belongs to the platform: use its API."
		default:
			return schema + "." + name + " belongs to the platform: use its API."
		}
	}

	return ""
}
