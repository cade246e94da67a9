package pgdump

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/sqllex"
)

// leftOut are the objects of a dump that were left out. What names one of them is tried, and left
// out as well if PostgreSQL rejects it.
type leftOut struct {
	objects map[string]bool // schema.name
	names   map[string]bool // without schemas
	// implicit tells that expressions can need a left-out object that they do not name: a cast, or
	// a default operator class.
	implicit bool
}

// overloaded are the kinds of objects of which several have the same name.
var overloaded = []string{"function", "procedure", "routine", "aggregate", "operator"}

// unnamed are the kinds that nothing in a dump refers to by a name of its own.
var unnamed = append([]string{"schema", "extension", "database", ""}, clusterKinds...)

// objectKey returns the name of an object with its schema.
func objectKey(n name) string {
	if len(n) == 1 {
		return "public." + n[0]
	}
	return n.String()
}

// add records that a statement was left out.
func (l *leftOut) add(ts tokens, s subject) {
	if s.action == "alter" {
		l.addPart(ts, s)
		return
	}
	if s.action != "create" || slices.Contains(unnamed, s.kind) {
		return
	}

	l.implicit = l.implicit || s.kind == "cast" || s.kind == "operator class"
	if len(s.name) == 0 {
		return
	}

	n := s.name
	if s.table != nil {
		n = name{s.table.schema(), n[0]}
	}

	l.names[n[len(n)-1]] = true
	if s.table == nil || s.kind == "index" {
		l.objects[objectKey(n)] = true
	}
}

// created records that a statement has created an object after all: a type after its shell.
func (l *leftOut) created(s subject) {
	if s.action == "create" && s.table == nil && len(s.name) > 0 && !slices.Contains(overloaded, s.kind) {
		delete(l.objects, objectKey(s.name))
	}
}

// addPart records the constraint or the sequence that a left-out ALTER creates.
func (l *leftOut) addPart(ts tokens, s subject) {
	if i := ts.find(s.after, "constraint"); i > 0 {
		l.names[ts.identifier(i+1)] = true
	}

	for i := range ts.all {
		if ts.has(i, "sequence", "name") {
			n, _ := ts.name(i + 2)
			l.objects[objectKey(n)] = true
		}
	}
}

// has reports whether a statement is about a left-out object. It is false for an object whose name
// others can have.
func (l *leftOut) has(s subject) bool {
	switch {
	case s.table != nil:
		return l.objects[objectKey(s.table)]
	case len(s.name) == 0, slices.Contains(overloaded, s.kind), slices.Contains(unnamed, s.kind),
		s.action == "create" && s.kind == "type": // after its shell
		return false
	}

	return l.objects[objectKey(s.name)]
}

// named reports whether a statement names a left-out object, outside the bodies of functions.
func (l *leftOut) named(ts tokens) bool {
	if len(l.names) == 0 {
		return false
	}

	for i := 0; i < len(ts.all); i++ {
		if ts.kind(i) == sqllex.String && l.objects[strings.Trim(ts.raw(i), "'")] { // name in a regclass
			return true
		}

		n, _ := ts.name(i)
		switch {
		case len(n) == 1 && l.names[n[0]], len(n) > 1 && l.objects[n[0]+"."+n[1]]:
			return true
		case len(n) > 1:
			i += 2*len(n) - 2
		}
	}

	return false
}

// mayFail reports whether PostgreSQL can reject a statement for the rights of the project, or for
// an object that was left out.
func (r *rules) mayFail(ts tokens, s subject) bool {
	return r.left.implicit || needsSuperuser(ts, s) || r.left.named(ts)
}

// needsSuperuser reports whether a statement can need a superuser.
func needsSuperuser(ts tokens, s subject) bool {
	switch s.kind {
	case "operator class", "operator family", "cast", "text search parser", "text search template", "aggregate",
		"conversion":
		return true
	case "type": // a shell type, or a base type
		return s.action == "create" && ts.word(s.after) != "as"
	case "function", "procedure":
		if s.action != "create" {
			return false
		}

		language := ts.find(s.after, "language")
		parameter := ts.find(s.after, "set")
		return (language > 0 && !slices.Contains([]string{"sql", "plpgsql"}, ts.identifier(language+1))) ||
			(parameter > 0 && ts.word(parameter+1) != "search_path")
	}

	return false
}

// ordinary removes the attributes of a function that only a superuser can give.
func ordinary(v verdict, s subject) verdict {
	if s.action != "create" || s.kind != "function" {
		return v
	}

	ts := tokenize(v.sql, 0)
	for _, attribute := range []string{"leakproof", "support"} {
		i := ts.find(s.after, attribute)
		if i < 0 || ts.word(i-1) == "not" {
			continue
		}

		end := i + 1
		if attribute == "support" {
			_, end = ts.name(end)
		}

		v.sql = ts.text[:ts.all[i].Start] + ts.text[ts.all[end-1].End:]
		v.notes = append(v.notes, note{Changed, strings.ToUpper(attribute) + " of function " + s.name.String() +
			" is left out: it needs a superuser"})
		ts = tokenize(v.sql, 0)
	}

	return v
}

// selected leaves out the objects that the user has named.
func (r *rules) selected(ts tokens, s subject) (verdict, bool) {
	if len(r.skip) == 0 || len(s.name) == 0 {
		return verdict{}, false
	}

	names := []string{s.name.String(), objectKey(s.name)}
	if s.table != nil {
		names = []string{objectKey(s.table) + "." + s.name[0]}
		if s.kind == "index" {
			names = []string{objectKey(name{s.table.schema(), s.name[0]})}
		}
	} else if i := ts.find(s.after, "constraint"); i > 0 && s.action == "alter" {
		names = append(names, objectKey(s.name)+"."+ts.identifier(i+1))
	}

	for _, n := range names {
		if _, named := r.skip[n]; !named {
			continue
		}

		r.skip[n] = true
		switch s.kind {
		case "schema":
			r.skipped[n] = true
		case "extension":
			r.left.implicit = true // its members are not known
		}

		v := leave(Skipped, "%s", strings.TrimSpace(s.action+" "+s.kind+" "+s.describe()))
		if s.action == "copy" {
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

// isOmissible reports whether a failure leaves a statement out: PostgreSQL refuses it for rights,
// or an object does not exist. Failures for rows are those of the import.
func isOmissible(p *pgconn.PgError) bool {
	switch p.Code {
	case "0A000", // feature_not_supported
		"3F000", // invalid_schema_name
		"55000": // object_not_in_prerequisite_state: a shell type
		return true
	}

	return strings.HasPrefix(p.Code, "42") // syntax_error_or_access_rule_violation
}
