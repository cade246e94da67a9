package statement

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/sqllex"
)

// maxStatements is the maximum number of statements per query.
const maxStatements = 100

// forbiddenFirst are the first words of statements that would end the transaction or change the
// protocol.
var forbiddenFirst = []string{"begin", "start", "commit", "end", "abort", "rollback", "savepoint", "release", "copy"}

// split splits a query into its statements. Safety does not depend on that: PostgreSQL accepts a
// single statement at a time, and the state of the transaction is checked after each.
func split(query string) ([]sqllex.Statement, error) {
	statements := sqllex.Split(query)
	if len(statements) == 0 {
		return nil, fault.OnField(fault.Unprocessable, "query", "required", "must contain a statement")
	}
	if len(statements) > maxStatements {
		return nil, fault.OnField(fault.Unprocessable, "query", "too_many", "must be at most %d statements",
			maxStatements)
	}

	for _, s := range statements {
		if forbidden(s) {
			return nil, fault.OnField(fault.Unprocessable, "query", "not_allowed",
				"must not contain %s: a query is one transaction; import and export bulk data separately",
				strings.ToUpper(s.Words[0]))
		}
	}

	return statements, nil
}

// forbidden reports whether a statement would end the transaction or change the protocol.
func forbidden(s sqllex.Statement) bool {
	first := s.Words[0]
	return slices.Contains(forbiddenFirst, first) ||
		(first == "prepare" && len(s.Words) > 1 && s.Words[1] == "transaction")
}
