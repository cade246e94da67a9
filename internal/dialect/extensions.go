package dialect

import (
	"regexp"
	"slices"
	"strings"
)

// platformExtensions are Supabase extensions that reach beyond a database or need a platform part:
// files, other hosts, other projects' statements, background workers, languages, or a server's
// memory. Extensions that a project may have are in package schema.
var platformExtensions = []string{"address_standardizer", "address_standardizer_data_us", "amcheck", "bloom", "dblink",
	"file_fdw", "http", "hypopg", "index_advisor", "lo", "old_snapshot", "pageinspect", "pg_buffercache", "pg_cron",
	"pg_freespacemap", "pg_graphql", "pg_hashids", "pg_jsonschema", "pg_net", "pg_partman", "pg_plan_filter",
	"pg_prewarm", "pg_repack", "pg_stat_monitor", "pg_stat_statements", "pg_surgery", "pg_tle", "pg_visibility",
	"pg_walinspect", "pgaudit",
	"pgjwt", "pgmq", "pgroonga", "pgroonga_database", "pgrouting", "pgrowlocks", "pgsodium", "pgstattuple", "pgtap",
	"plcoffee", "pljava", "plls", "plpgsql_check", "plv8", "postgis_raster", "postgis_sfcgal",
	"postgis_tiger_geocoder", "postgis_topology", "postgres_fdw", "refint", "rum", "safeupdate", "sslinfo",
	"supabase_vault", "supautils", "timescaledb", "wrappers", "xml2"}

// IsPlatformExtension reports whether an extension belongs to Supabase's platform, or comes from
// its catalog database.dev, so that a statement that creates it is left out with a note.
func IsPlatformExtension(name string) bool {
	return slices.Contains(platformExtensions, name) || (name != "uuid-ossp" && publishedName.MatchString(name))
}

// publishedName matches the names in the catalog, which have their publisher before them.
var publishedName = regexp.MustCompile(`^[a-z0-9_]+[-@][a-z0-9_]`)

// maxIdentifier is the size in bytes to which PostgreSQL truncates names.
const maxIdentifier = 63

func truncated(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	return strings.ToValidUTF8(name[:maxIdentifier], "")
}

// extension returns the extension that a statement creates or drops.
func extension(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "extension" || len(s.Name) == 0 {
		return Verdict{}, false
	}

	v := Verdict{Action: CreateExtension, SQL: ts.Text, Extension: Extension{Name: truncated(s.Name[0])}}
	if s.Action == "drop" {
		if ts.Raw(s.After) == "," { // several: PostgreSQL says that the platform installs them
			return Verdict{}, false
		}

		v.Action, v.Extension.Tolerant = DropExtension, ts.Has(2, "if", "exists")
		return v, true
	}

	v.Extension.Tolerant = ts.Has(2, "if", "not", "exists")
	if at := ts.Find(s.After, "schema"); at > 0 {
		v.Extension.Schema = truncated(ts.Identifier(at + 1))
	}

	return v, true
}

// extensionChange returns the extension that a statement moves. It leaves out an update.
func extensionChange(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "extension" || len(s.Name) != 1 {
		return Verdict{}, false
	}

	switch {
	case ts.Word(s.After) == "update":
		return leaveOut("update of extension %s is left out: extensions belong to the platform", s.Name), true
	case ts.Has(s.After, "set", "schema") && ts.Identifier(s.After+2) != "":
		return Verdict{Action: MoveExtension, SQL: ts.Text,
			Extension: Extension{Name: truncated(s.Name[0]), Schema: truncated(ts.Identifier(s.After + 2))}}, true
	}

	return Verdict{}, false
}

// extensionComment leaves out the comment on an extension, which belongs to the platform.
func extensionComment(_ Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "extension" {
		return Verdict{}, false
	}

	return leaveOut("comment on extension %s is left out: extensions belong to the platform", s.Name), true
}
