package pgdump

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/sqllex"
)

// leftOut are the objects that were left out. A statement that names one is tried, and left out too
// if PostgreSQL rejects it.
type leftOut struct {
	objects map[string]bool // schema.name
	names   map[string]bool // without schemas
	// implicit tells that expressions can need a left-out object that they do not name: a cast, or
	// a default operator class.
	implicit bool
}

// overloadKinds are the object kinds that can share a name.
var overloadKinds = []string{"function", "procedure", "routine", "aggregate", "operator"}

// unnamedKinds are the kinds to which no other statement refers by name.
var unnamedKinds = append([]string{"schema", "extension", "database", ""}, clusterKinds...)

// objectKey returns an object's name with the schema.
func objectKey(n dialect.Name) string {
	if len(n) == 1 {
		return "public." + n[0]
	}
	return n.String()
}

// addStatement records that a statement was left out.
func (l *leftOut) addStatement(ts dialect.Tokens, s dialect.Subject) {
	if s.Action == "alter" {
		l.addPart(ts, s)
		return
	}
	if s.Action != "create" || slices.Contains(unnamedKinds, s.Kind) {
		return
	}

	l.implicit = l.implicit || s.Kind == "cast" || s.Kind == "operator class"
	if len(s.Name) == 0 {
		return
	}

	n := s.Name
	if s.Table != nil {
		n = dialect.Name{s.Table.Schema(), n[0]}
	}

	l.names[n[len(n)-1]] = true
	if s.Table == nil || s.Kind == "index" {
		l.objects[objectKey(n)] = true
	}
}

// created records that a statement has created an object after all: a type after its shell.
func (l *leftOut) created(s dialect.Subject) {
	if s.Action == "create" && s.Table == nil && len(s.Name) > 0 && !slices.Contains(overloadKinds, s.Kind) {
		delete(l.objects, objectKey(s.Name))
	}
}

// addPart records the constraint or the sequence that a left-out ALTER creates.
func (l *leftOut) addPart(ts dialect.Tokens, s dialect.Subject) {
	if i := ts.Find(s.After, "constraint"); i > 0 {
		l.names[ts.Identifier(i+1)] = true
	}

	for i := range ts.All {
		if ts.Has(i, "sequence", "name") {
			n, _ := ts.Name(i + 2)
			l.objects[objectKey(n)] = true
		}
	}
}

// has reports whether a statement is about a left-out object. It is false for an object whose name
// others can have.
func (l *leftOut) has(s dialect.Subject) bool {
	switch {
	case s.Table != nil:
		return l.objects[objectKey(s.Table)]
	case len(s.Name) == 0, slices.Contains(overloadKinds, s.Kind), slices.Contains(unnamedKinds, s.Kind),
		s.Action == "create" && s.Kind == "type": // after its shell
		return false
	}

	return l.objects[objectKey(s.Name)]
}

// isNamedIn reports whether a statement names a left-out object, outside function bodies.
func (l *leftOut) isNamedIn(ts dialect.Tokens) bool {
	if len(l.names) == 0 {
		return false
	}

	for i := 0; i < len(ts.All); i++ {
		if ts.Kind(i) == sqllex.String && l.objects[strings.Trim(ts.Raw(i), "'")] { // name in a regclass
			return true
		}

		n, _ := ts.Name(i)
		switch {
		case len(n) == 1 && l.names[n[0]], len(n) > 1 && l.objects[n[0]+"."+n[1]]:
			return true
		case len(n) > 1:
			i += 2*len(n) - 2
		}
	}

	return false
}

// mayFail reports whether PostgreSQL can reject a statement because the project lacks rights, or
// for an object that was left out.
func (r *rules) mayFail(ts dialect.Tokens, s dialect.Subject) bool {
	return r.omissions.implicit || needsSuperuser(ts, s) || r.omissions.isNamedIn(ts)
}

// needsSuperuser reports whether a statement can need a superuser.
func needsSuperuser(ts dialect.Tokens, s dialect.Subject) bool {
	switch s.Kind {
	case "operator class", "operator family", "cast", "text search parser", "text search template", "aggregate",
		"conversion":
		return true
	case "type": // a shell type, or a base type
		return s.Action == "create" && ts.Word(s.After) != "as"
	case "function", "procedure":
		if s.Action != "create" {
			return false
		}

		language := ts.Find(s.After, "language")
		parameter := ts.Find(s.After, "set")
		return (language > 0 && !slices.Contains([]string{"sql", "plpgsql"}, ts.Identifier(language+1))) ||
			(parameter > 0 && ts.Word(parameter+1) != "search_path")
	}

	return false
}

// ordinary removes function attributes that only a superuser can give.
func ordinary(v verdict, s dialect.Subject) verdict {
	if s.Action != "create" || s.Kind != "function" {
		return v
	}

	ts := dialect.Tokenize(v.sql, 0)
	for _, attribute := range []string{"leakproof", "support"} {
		i := ts.Find(s.After, attribute)
		if i < 0 || ts.Word(i-1) == "not" {
			continue
		}

		end := i + 1
		if attribute == "support" {
			_, end = ts.Name(end)
		}

		v.sql = ts.Text[:ts.All[i].Start] + ts.Text[ts.All[end-1].End:]
		v.notes = append(v.notes, note{Changed, strings.ToUpper(attribute) + " of function " + s.Name.String() +
			" is left out: it needs a superuser"})
		ts = dialect.Tokenize(v.sql, 0)
	}

	return v
}

// selected leaves out the objects that the user named.
func (r *rules) selected(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	if len(r.skip) == 0 || len(s.Name) == 0 {
		return verdict{}, false
	}

	names := []string{s.Name.String(), objectKey(s.Name)}
	if s.Table != nil {
		names = []string{objectKey(s.Table) + "." + s.Name[0]}
		if s.Kind == "index" {
			names = []string{objectKey(dialect.Name{s.Table.Schema(), s.Name[0]})}
		}
	} else if i := ts.Find(s.After, "constraint"); i > 0 && s.Action == "alter" {
		names = append(names, objectKey(s.Name)+"."+ts.Identifier(i+1))
	}

	for _, n := range names {
		if _, ok := r.skip[n]; !ok {
			continue
		}

		r.skip[n] = true
		switch s.Kind {
		case "schema":
			r.omittedSchemas[n] = true
		case "extension":
			r.omissions.implicit = true // its members are not known
		}

		v := leave(Skipped, "%s", strings.TrimSpace(s.Action+" "+s.Kind+" "+s.Describe()))
		if s.Action == "copy" {
			v.action = skipRows
		}

		return v, true
	}

	return verdict{}, false
}

// unknownSkip returns a name to leave out that no statement has had, or "".
func (r *rules) unknownSkip() string {
	for _, name := range slices.Sorted(maps.Keys(r.skip)) {
		if !r.skip[name] {
			return name
		}
	}

	return ""
}

// isOmissible reports whether a failure leaves a statement out: PostgreSQL rejects it for rights,
// or an object does not exist. A failure for rows fails the import.
func isOmissible(p *pgconn.PgError) bool {
	switch p.Code {
	case "0A000", // feature_not_supported
		"3F000", // invalid_schema_name
		"55000": // object_not_in_prerequisite_state: a shell type
		return true
	}

	return strings.HasPrefix(p.Code, "42") // syntax_error_or_access_rule_violation
}
