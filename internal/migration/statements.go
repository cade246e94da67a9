package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/sqllex"
)

// recordsSchema has records from Supabase's tool, and from socle push about seeds.
const recordsSchema = "supabase_migrations"

// platformSchemas are the schemas in a project's database that do not belong to the user's schema.
var platformSchemas = append(slices.Clone(namespace.Platform), schema.ExtensionsSchema, recordsSchema)

// unrelated are the entry kinds that do not belong to the user's schema.
var unrelated = []string{"ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE", "DATABASE PROPERTIES", "EVENT TRIGGER"}

// relevant returns the dump entries that describe the user's objects. The owner's login is replaced
// by CURRENT_USER, since it has another name in each project.
func relevant(entries []pgdump.Entry, owner string) []pgdump.Entry {
	var all []pgdump.Entry
	for _, e := range entries {
		kind, name, _ := strings.Cut(e.Tag, " ")
		switch {
		case projectdb.IsUserObject(e.Desc, e.Namespace, e.Tag):
		case projectdb.IsServiceObject(e.Desc, e.Namespace, e.Tag, e.Owner, owner),
			slices.Contains(platformSchemas, e.Namespace), e.Namespace == "pg_catalog",
			slices.Contains(unrelated, e.Desc),
			e.Desc == "SCHEMA" && (e.Tag == "public" || slices.Contains(platformSchemas, e.Tag)),
			e.Desc == "COMMENT" && kind == "EXTENSION",
			(e.Desc == "COMMENT" || e.Desc == "ACL") && kind == "SCHEMA" && slices.Contains(platformSchemas, name),
			e.Desc == "ACL" && e.Namespace == "" && kind != "SCHEMA",
			e.Desc == "DEFAULT ACL" && e.Owner != owner:
			continue
		}

		e.Definition = portable(e.Definition, owner)
		e.Drop = portable(e.Drop, owner)
		all = append(all, e)
	}

	return all
}

// portable replaces the owner's login name in a statement with CURRENT_USER.
func portable(sql, owner string) string {
	if !strings.Contains(sql, owner) {
		return sql
	}

	var b strings.Builder
	end := 0
	l := sqllex.New(sql)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		if t.Kind == sqllex.Word && sql[t.Start:t.End] == owner {
			b.WriteString(sql[end:t.Start] + "CURRENT_USER")
			end = t.End
		}
	}

	return b.String() + sql[end:]
}

// creating returns the statements that create an object. filled tells that it belongs to a table
// that may have rows.
func creating(e *pgdump.Entry, filled bool) []change {
	all := statements(e)
	if len(all) == 0 {
		return nil
	}

	first := &all[0]
	switch e.Desc {
	case "MATERIALIZED VIEW":
		all = append(all, change{sql: "REFRESH MATERIALIZED VIEW " + objectName(e), warning: warnRefresh})
	case "INDEX":
		if filled {
			first.warning = warnIndex
		}
	case "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT":
		if filled && !strings.HasSuffix(first.sql, "NOT VALID") {
			first.warning = warnScan
		}
	case "EXTENSION":
		first.sql = "CREATE EXTENSION IF NOT EXISTS " + quoteTag(e.Tag)
		if _, place, ok := strings.Cut(trimmed(e.Definition), " WITH SCHEMA "); ok {
			first.sql += " WITH SCHEMA " + place
		}
	}

	return all
}

// dropping returns the statements that drop an object.
func dropping(e *pgdump.Entry) []change {
	definition := statements(e)
	if len(definition) == 0 {
		return nil
	}

	first := definition[0].sql
	drop := trimmed(e.Drop)
	switch e.Desc {
	case "ACL", "DEFAULT ACL":
		return regrant(e.Definition, "")
	case "COMMENT":
		return []change{{sql: withoutComment(first)}}
	case "ROW SECURITY":
		return []change{{sql: strings.Replace(first, " ENABLE ROW LEVEL SECURITY", " DISABLE ROW LEVEL SECURITY", 1)}}
	case "SEQUENCE OWNED BY":
		statement, _, _ := strings.Cut(first, " OWNED BY ")
		return []change{{sql: statement + " OWNED BY NONE"}}
	case "TABLE":
		return []change{{sql: drop, warning: warnLoss}}
	case "SEQUENCE":
		if statement, _, identity := strings.Cut(first, " ADD GENERATED "); identity {
			return []change{{sql: statement + " DROP IDENTITY IF EXISTS"}}
		}
		return []change{{sql: strings.Replace(drop, "DROP SEQUENCE ", "DROP SEQUENCE IF EXISTS ", 1)}}
	case "TABLE ATTACH":
		statement, partition, _ := strings.Cut(first, " ATTACH PARTITION ")
		partition, _, _ = strings.Cut(partition, " ")
		return []change{{sql: statement + " DETACH PARTITION " + partition}}
	case "PUBLICATION TABLE":
		return []change{{sql: unpublish(first)}}
	case "EXTENSION":
		return []change{{sql: "DROP EXTENSION IF EXISTS " + quoteTag(e.Tag), warning: warnLoss}}
	}

	if drop == "" {
		return nil
	}

	return []change{{sql: drop}}
}

// unpublish returns the statement that removes a table from a publication, to which first adds it.
// It contains none of the table's columns and rows.
func unpublish(first string) string {
	statement, table, _ := strings.Cut(first, " ADD TABLE ")
	all := tokens(table)
	end := slices.IndexFunc(all, func(t sqlToken) bool { return t.text == "(" || t.is("WHERE") })
	if end >= 0 {
		table = strings.TrimSpace(table[:all[end].Start])
	}

	return statement + " DROP TABLE " + table
}

// isSameSequence reports whether two definitions define a sequence, or the same identity column.
func isSameSequence(old, now *pgdump.Entry) bool {
	before, _, identity := strings.Cut(old.Definition, " ADD GENERATED ")
	after, _, _ := strings.Cut(now.Definition, " ADD GENERATED ")
	if identity {
		return before == after
	}

	return strings.HasPrefix(now.Definition, "CREATE SEQUENCE ")
}

// alterSequence returns the statement that changes a sequence, or an identity column's. It keeps
// the sequence's value. pg_dump leaves out default options.
func alterSequence(now *pgdump.Entry) string {
	head, options, _ := strings.Cut(statements(now)[0].sql, "\n")
	sql, option := "ALTER"+strings.TrimPrefix(head, "CREATE"), "\n    "
	if column, kind, identity := strings.Cut(head, " ADD GENERATED "); identity {
		kind, _, _ = strings.Cut(kind, " AS IDENTITY")
		sql, option = column+" SET GENERATED "+kind, "\n    SET "
	} else if !strings.Contains(options, "    AS ") {
		sql += option + "AS bigint"
	}

	for line := range strings.SplitSeq(options, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && line != ")" && !strings.HasPrefix(line, "SEQUENCE NAME ") {
			sql += option + line
		}
	}

	if !strings.HasSuffix(sql, option+"CYCLE") {
		sql += option + "NO CYCLE"
	}

	return sql
}

// quoteTag quotes an extension's name.
func quoteTag(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// withoutComment returns the statement that removes a comment.
func withoutComment(sql string) string {
	is := slices.IndexFunc(tokens(sql), func(t sqlToken) bool { return t.is("IS") && t.depth == 0 })
	if is < 0 {
		return sql
	}

	return sql[:tokens(sql)[is].End] + " NULL"
}

// regrant returns the statements that turn one set of GRANT and REVOKE statements into another.
func regrant(from, to string) []change {
	oldGrants, newGrants := grants(from), grants(to)

	var all []change
	for _, sql := range slices.Backward(oldGrants) {
		if !slices.Contains(newGrants, sql) {
			all = append(all, change{sql: inverse(sql)})
		}
	}

	for _, sql := range newGrants {
		if !slices.Contains(oldGrants, sql) {
			all = append(all, change{sql: sql})
		}
	}

	return all
}

func grants(definition string) []string {
	var all []string
	for _, s := range sqllex.Split(definition) {
		sql := strings.TrimSpace(s.Text)
		if !strings.HasPrefix(sql, "SET SESSION AUTHORIZATION") && !strings.HasPrefix(sql, "RESET SESSION") {
			all = append(all, sql)
		}
	}

	return all
}

// inverse returns the statement that undoes a GRANT or REVOKE, also for default privileges.
func inverse(sql string) string {
	all := tokens(sql)
	verb := slices.IndexFunc(all, func(t sqlToken) bool { return t.is("GRANT", "REVOKE") })
	if verb < 0 {
		return sql
	}

	word, from, to := "REVOKE", "TO", "FROM"
	if all[verb].is("REVOKE") {
		word, from, to = "GRANT", "FROM", "TO"
	}

	for i := len(all) - 1; i > verb; i-- {
		if all[i].is(from) && all[i].depth == 0 {
			rest := strings.TrimSuffix(sql[all[i].End:], " WITH GRANT OPTION")
			return sql[:all[verb].Start] + word + sql[all[verb].End:all[i].Start] + to + rest
		}
	}

	return sql
}
