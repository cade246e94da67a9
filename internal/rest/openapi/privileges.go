package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// PrivilegesSQL selects a row as package plan's statements do. Its argument is a schema, its body
// has the current role's privileges there: the letters for select, insert, update and delete by
// relation, and the names and parameters of callable functions, by which requests distinguish
// overloads.
const PrivilegesSQL = `
	select null, 0, null, pg_catalog.current_setting('response.headers', true), pg_catalog.current_setting('response.status', true), null,
		pg_catalog.json_build_object(
			'relations', (
				select coalesce(pg_catalog.json_object_agg(c.relname, pg_catalog.concat(
					case when pg_catalog.has_any_column_privilege(c.oid, 'select') then 'r' end,
					case when pg_catalog.has_any_column_privilege(c.oid, 'insert') then 'i' end,
					case when pg_catalog.has_any_column_privilege(c.oid, 'update') then 'u' end,
					case when pg_catalog.has_table_privilege(c.oid, 'delete') then 'd' end)), '{}')
				from pg_catalog.pg_class c
				where c.relnamespace = n.oid and c.relkind in ('r', 'v', 'm', 'f', 'p')),
			'functions', (
				select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('name', p.proname, 'params', array(
					select coalesce(p.proargnames[i], '')
					from pg_catalog.generate_series(1, pg_catalog.cardinality(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]))) i
					where p.proargmodes is null or p.proargmodes[i] in ('i', 'b', 'v')
					order by i))), '[]')
				from pg_catalog.pg_proc p
				where p.pronamespace = n.oid and pg_catalog.has_function_privilege(p.oid, 'execute')))
	from (select pg_catalog.max(n.oid) as oid from pg_catalog.pg_namespace n
		where n.nspname = $1::text and pg_catalog.has_schema_privilege(n.oid, 'usage')) n`

// Privileges are a role's privileges in a schema.
type Privileges struct {
	all       bool
	relations map[string]string // letters by name
	functions map[string]bool   // by signature
}

// AllPrivileges are for a role that may use all objects.
var AllPrivileges = Privileges{all: true}

// ParsePrivileges reads the body of [PrivilegesSQL].
func ParsePrivileges(text []byte) (Privileges, error) {
	var got struct {
		Relations map[string]string
		Functions []struct {
			Name   string
			Params []string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return Privileges{}, fmt.Errorf("decode the privileges of a role: %w", err)
	}

	may := Privileges{relations: got.Relations, functions: map[string]bool{}}
	for _, f := range got.Functions {
		may.functions[signature(f.Name, f.Params)] = true
	}

	return may, nil
}

// signature identifies a function in its schema.
func signature(name string, params []string) string {
	return strings.Join(slices.Concat([]string{name}, params), "\x00")
}

// on returns the letters for the operations possible on a relation.
func (p Privileges) on(r *catalog.Relation) string {
	may := "riud"
	if !p.all {
		may = p.relations[r.Name.Name]
	}

	return strings.Map(func(letter rune) rune {
		if (letter == 'i' && !r.Insertable) || (letter == 'u' && !r.Updatable) || (letter == 'd' && !r.Deletable) {
			return -1
		}
		return letter
	}, may)
}

// canCall reports whether the role may call a function.
func (p Privileges) canCall(f *catalog.Function) bool {
	if p.all {
		return true
	}

	var params []string
	for _, one := range f.Params {
		params = append(params, one.Name)
	}

	return p.functions[signature(f.Name.Name, params)]
}
