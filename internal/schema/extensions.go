package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// ExtensionsSchema holds the extensions of a new project, and others for which no schema is named;
// it follows public in search paths. It belongs to the platform: install scripts run as a superuser
// and must find no user objects in it, so each extension begins there.
const ExtensionsSchema = "extensions"

// AllowedExtensions are the extensions that a project may install: types, operators and functions
// without access to anything outside the database, or to more in it than their caller has.
// PostgreSQL's other contrib modules read files or pages (adminpack, file_fdw, pageinspect,
// pg_surgery, pg_walinspect), all projects' statements, locks or memory (pg_stat_statements,
// pg_buffercache, pg_prewarm, pgrowlocks, pgstattuple), other hosts (dblink, postgres_fdw), bring a
// language, or are a risk without use here (refint, xml2, lo, amcheck, bloom).
var AllowedExtensions = []string{"autoinc", "btree_gin", "btree_gist", "citext", "cube", "dict_int", "dict_xsyn",
	"earthdistance", "fuzzystrmatch", "hstore", "insert_username", "intagg", "intarray", "isn", "ltree", "moddatetime",
	"pg_trgm", "pgcrypto", "postgis", "seg", "tablefunc", "tcn", "tsm_system_rows", "tsm_system_time", "unaccent",
	"uuid-ossp", "vector"}

// Extension is an extension that the project has or may install.
type Extension struct {
	Name             string  `json:"name" example:"pg_trgm"`
	Description      string  `json:"description"`
	Version          *string `json:"version" nullable:"true" doc:"Version available on the server; null if its files were removed."`
	InstalledVersion *string `json:"installedVersion" nullable:"true" doc:"Null if it is not installed."`
	Schema           *string `json:"schema" nullable:"true" doc:"Schema in which it is installed."`
}

const (
	selectExtensions = `
		select coalesce(e.extname, a.name)::text as name, coalesce(a.comment, '') as description, a.default_version as version,
			e.extversion as installed_version, n.nspname::text as schema` + knownExtensions
	knownExtensions = `
		from pg_catalog.pg_available_extensions a
		full join pg_catalog.pg_extension e on e.extname = a.name
		left join pg_catalog.pg_namespace n on n.oid = e.extnamespace
		where (a.name = any(@harmless) or e.oid is not null) and coalesce(e.extname, a.name) <> 'plpgsql'`
)

var (
	extensionSorts = map[string]string{"name": "coalesce(e.extname, a.name)"}
	harmless       = pgx.StrictNamedArgs{"harmless": AllowedExtensions}
)

// ListExtensions returns a page of the extensions that the project has or may install, sorted by
// name, and the total number.
func ListExtensions(ctx context.Context, q pg.Querier, page pg.Page) ([]Extension, int64, error) {
	extensions, err := pg.All[Extension](ctx, q,
		selectExtensions+page.Clause(extensionSorts, "e.oid"), page.Args(harmless))
	if err != nil {
		return nil, 0, err
	}

	total, err := pg.Value[int64](ctx, q, `select count(*)`+knownExtensions, harmless)
	return extensions, total, err
}

// CreateExtension installs an extension with its dependencies into [ExtensionsSchema]. Like
// [DeleteExtension], it runs on the platform's login and puts no client text into SQL. It fails
// with Unprocessable on name if the extension is not in [AllowedExtensions] or not available on the
// server, and with Conflict if it is installed already or if names in its script could resolve to
// user objects.
func CreateExtension(ctx context.Context, platform pg.Beginner, name string) (Extension, error) {
	return CreateExtensionIn(ctx, platform, name, ExtensionsSchema)
}

// CreateExtensionIn installs an extension as [CreateExtension] does, and moves it to a schema of
// the project's owner. It stays in [ExtensionsSchema] if it can't move, see [moveExtension]; the
// result has its schema.
func CreateExtensionIn(ctx context.Context, platform pg.Beginner, name, target string) (Extension, error) {
	if !slices.Contains(AllowedExtensions, name) {
		return Extension{}, fault.OnField(fault.Unprocessable, "name", "invalid_value",
			"is not an extension that projects may install: these are %s", strings.Join(AllowedExtensions, ", "))
	}

	var extension Extension
	err := change(ctx, platform, func(ctx context.Context, tx pgx.Tx) error {
		major, err := pg.Value[string](ctx, tx,
			`select (pg_catalog.current_setting('server_version_num')::int / 10000)::text`)
		if err != nil {
			return err
		}

		if err := createExtensionSchema(ctx, tx); err != nil {
			return err
		}

		place, err := scriptSchema(ctx, tx, name, target)
		if err != nil {
			return err
		}

		err = createBesideRequirements(ctx, tx, name, place)
		switch pg.State(err) {
		case "42710", "23505": // duplicate_object, unique_violation in the catalog
			return fault.OnField(fault.Conflict, "name", "already_exists", "is already installed").WithCause(err)
		case "0A000", "58P01": // feature_not_supported: not available; undefined_file
			return notAvailable(name, major).WithCause(err)
		}

		if err != nil {
			return translate(err, nil)
		}
		if err := openMemberTables(ctx, tx, place); err != nil {
			return err
		}
		if err := moveExtension(ctx, tx, name, place, target); err != nil {
			return err
		}

		audit.Created(ctx, name)
		extension, err = getExtension(ctx, tx, name)
		return err
	})

	return extension, err
}

// notAvailable returns the fault for an extension without files on a server with a major version.
func notAvailable(name, major string) *fault.Error {
	p := "postgresql-contrib" // package with PostgreSQL's own extensions
	switch name {
	case "postgis":
		p = "postgresql-" + major + "-postgis-3"
	case "vector":
		p = "postgresql-" + major + "-pgvector"
		if major < "17" { // Debian has none for an older one
			p += " of apt.postgresql.org"
		}
	}

	return fault.OnField(fault.Unprocessable, "name", "extension_missing",
		"is not available on this server: an operator must install its package (%s on Debian)", p)
}

// createExtensionSchema creates [ExtensionsSchema] if necessary, in which an install script
// searches names. It fails with Conflict unless all objects there belong to the platform.
func createExtensionSchema(ctx context.Context, tx pgx.Tx) error {
	if err := execute(ctx, tx, "create schema if not exists "+ExtensionsSchema); err != nil {
		return err
	}

	foreign, err := pg.Value[bool](ctx, tx, `
		select n.nspowner <> pg_catalog.to_regrole(pg_catalog.quote_ident(current_user)) or `+hasForeignObjects+`
		from pg_catalog.pg_namespace n where n.nspname = @schema`, pgx.StrictNamedArgs{"schema": ExtensionsSchema})
	switch {
	case err != nil:
		return err
	case foreign:
		return fault.New(fault.Conflict,
			"the schema extensions has another owner or contains objects that belong to no extension").
			WithCode("schema_taken")
	}

	return execute(ctx, tx, "grant usage on schema "+ExtensionsSchema+" to public")
}

// hasForeignObjects is the SQL condition that schema n contains objects that belong neither to an
// extension nor to the schema's owner.
const hasForeignObjects = `exists (
	select from pg_catalog.pg_depend d
	where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and d.refobjid = n.oid
		and d.classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass and not exists (
		select from pg_catalog.pg_depend x where x.classid = d.classid and x.objid = d.objid and x.deptype = 'e')
		and not exists (
			select from pg_catalog.pg_proc p
			where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = d.objid and p.proowner = n.nspowner
			union all select from pg_catalog.pg_type t
			where d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass and t.oid = d.objid and t.typowner = n.nspowner
			union all select from pg_catalog.pg_class c
			where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and c.oid = d.objid and c.relowner = n.nspowner))`

// createBesideRequirements creates an extension in a schema. A script also searches the schemas of
// the extensions that it requires, and would find user objects there. So these are in
// [ExtensionsSchema] meanwhile.
func createBesideRequirements(ctx context.Context, tx pgx.Tx, name, place string) error {
	type requirement struct{ Name, Schema string }
	elsewhere, err := pg.All[requirement](ctx, tx, `
		select e.extname::text as name, n.nspname::text as schema
		from pg_catalog.pg_available_extensions a
		join pg_catalog.pg_available_extension_versions v on v.name = a.name and v.version = a.default_version
		cross join pg_catalog.unnest(v.requires) r(name)
		join pg_catalog.pg_extension e on e.extname = r.name
		join pg_catalog.pg_namespace n on n.oid = e.extnamespace
		where a.name = @name and n.nspname <> @schema
		order by e.extname`, pgx.StrictNamedArgs{"name": name, "schema": ExtensionsSchema})
	if err != nil {
		return err
	}

	for _, r := range elsewhere {
		if err := setExtensionSchema(ctx, tx, r.Name, ExtensionsSchema); err != nil {
			return fault.New(fault.Conflict, "the required extension %s is installed in another schema", r.Name).
				WithCode("schema_taken").WithCause(err)
		}
	}
	if err := execute(ctx, tx, "create extension "+pg.Quote(name)+" schema "+pg.Quote(place)+" cascade"); err != nil {
		return err
	}
	for _, r := range elsewhere {
		if err := setExtensionSchema(ctx, tx, r.Name, r.Schema); err != nil {
			return err
		}
	}

	return nil
}

// textRunners are extensions with functions that run SQL from an argument. In a schema of the rows
// API, every caller could run any SQL by them.
var textRunners = []string{"tablefunc"}

// isOwnersSchema is the SQL condition that schema n is none of the platform's and of PostgreSQL's.
const isOwnersSchema = `n.nspname <> 'information_schema' and not pg_catalog.starts_with(n.nspname, 'pg_')
	and n.nspowner <> pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))`

// scriptSchema returns the schema in which an extension's script runs: [ExtensionsSchema], or the
// target of an extension that can't move. Then nobody creates functions and operators until the
// transaction ends, and the target must have none that belongs to no extension.
func scriptSchema(ctx context.Context, tx pgx.Tx, name, target string) (string, error) {
	if target == ExtensionsSchema {
		return ExtensionsSchema, nil
	}

	isFixed, err := pg.Value[bool](ctx, tx, `
		select exists (
			select from pg_catalog.pg_available_extensions a
			join pg_catalog.pg_available_extension_versions v on v.name = a.name and v.version = a.default_version
			where a.name = @name and not v.relocatable and v.schema is null)`, pgx.StrictNamedArgs{"name": name})
	if err != nil || !isFixed {
		return ExtensionsSchema, err
	}

	if err := execute(ctx, tx,
		"lock table pg_catalog.pg_proc, pg_catalog.pg_operator in share row exclusive mode"); err != nil {
		return "", err
	}

	isSafe, err := pg.Value[bool](ctx, tx, `
		select exists (
			select from pg_catalog.pg_namespace n
			where n.nspname = @target and `+isOwnersSchema+` and not exists (
				select from pg_catalog.pg_depend d
				where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and d.refobjid = n.oid
					and d.classid in ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
					and not exists (
					select from pg_catalog.pg_depend x where x.classid = d.classid and x.objid = d.objid and x.deptype = 'e')))`,
		pgx.StrictNamedArgs{"target": target})
	if err != nil || !isSafe {
		return ExtensionsSchema, err
	}

	return target, nil
}

// moveExtension moves an extension to a schema that belongs to the project's owner, as no script
// runs then. The extension stays where it is if there is no such schema or the schema has an object
// with the name of a member, and so do [textRunners] and extensions that can't move.
func moveExtension(ctx context.Context, tx pgx.Tx, name, place, target string) error {
	if target == place || slices.Contains(textRunners, name) {
		return nil
	}

	possible, err := pg.Value[bool](ctx, tx, `
		select exists (select from pg_catalog.pg_namespace n where n.nspname = @target and (n.nspname = @platform or `+isOwnersSchema+`))`,
		pgx.StrictNamedArgs{"target": target, "platform": ExtensionsSchema})
	if err != nil || !possible {
		return err
	}

	err = setExtensionSchema(ctx, tx, name, target)
	switch pg.State(err) {
	case "0A000", "42710", "42723", "42P07": // feature_not_supported: not relocatable; duplicate names
		return nil
	}

	return err
}

// SetExtensionSchema moves an extension to a schema and returns it. It stays where it is for the
// reasons of [CreateExtensionIn]. SetExtensionSchema fails as [DeleteExtension] does if it is not
// installed, or an operator's.
func SetExtensionSchema(ctx context.Context, platform pg.Beginner, name, target string) (Extension, error) {
	var extension Extension
	err := change(ctx, platform, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if extension, err = installedExtension(ctx, tx, name); err != nil {
			return err
		}
		if target == ExtensionsSchema {
			if err := createExtensionSchema(ctx, tx); err != nil {
				return err
			}
		}
		if err := moveExtension(ctx, tx, name, *extension.Schema, target); err != nil {
			return err
		}

		extension, err = getExtension(ctx, tx, name)
		return err
	})

	return extension, err
}

// installedExtension returns an installed extension that a project may have.
func installedExtension(ctx context.Context, tx pgx.Tx, name string) (Extension, error) {
	extension, err := getExtension(ctx, tx, name)
	switch {
	case fault.Is(err, fault.NotFound):
		return extension, fault.New(fault.NotFound, "the extension is not installed").WithCause(err)
	case err == nil && !slices.Contains(AllowedExtensions, name):
		return extension, fault.New(fault.Forbidden, "an operator installed the extension")
	}

	return extension, err
}

// setExtensionSchema moves an extension to a schema. A failure leaves the transaction as it was.
func setExtensionSchema(ctx context.Context, tx pgx.Tx, name, target string) error {
	return pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		return execute(ctx, part, "alter extension "+pg.Quote(name)+" set schema "+pg.Quote(target))
	})
}

// openMemberTables disables row level security for extension tables; new tables get it by default.
// Such tables hold constant data, such as PostGIS coordinate systems, and functions read them with
// the caller's rights. The install script sets their grants.
func openMemberTables(ctx context.Context, tx pgx.Tx, place string) error {
	tables, err := pg.Values[string](ctx, tx, `
		select pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = @schema and c.relkind = 'r' and c.relrowsecurity and not `+notMember,
		pgx.StrictNamedArgs{"schema": place})
	if err != nil {
		return err
	}

	for _, table := range tables {
		if err := execute(ctx, tx, "alter table "+table+" disable row level security"); err != nil {
			return err
		}
	}

	return nil
}

// notMember is the SQL condition that relation c belongs to no extension.
const notMember = `not exists (
	select from pg_catalog.pg_depend x where x.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and x.objid = c.oid and x.deptype = 'e')`

func getExtension(ctx context.Context, q pg.Querier, name string) (Extension, error) {
	return pg.One[Extension](ctx, q, selectExtensions+` and e.extname = @name`,
		pgx.StrictNamedArgs{"harmless": AllowedExtensions, "name": name})
}

// DeleteExtension drops an extension and returns its last state. It fails with NotFound if it is
// not installed, with Forbidden if it is not in [AllowedExtensions], since an operator installed
// it, and with Conflict, code in_use and the member dependents, if other objects depend on it.
func DeleteExtension(ctx context.Context, platform pg.Beginner, name string) (Extension, error) {
	var extension Extension
	err := change(ctx, platform, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if extension, err = installedExtension(ctx, tx, name); err != nil {
			return err
		}

		id, err := pg.Value[uint32](ctx, tx, `select oid from pg_catalog.pg_extension where extname = @name`,
			pgx.StrictNamedArgs{"name": name})
		if err != nil {
			return err
		}

		if _, err := drop(ctx, tx, "drop extension "+pg.Quote(name), object{"pg_extension", id, 0}, false); err != nil {
			return err
		}

		return dropExtensionSchema(ctx, tx)
	})

	return extension, err
}

// dropExtensionSchema drops [ExtensionsSchema] if it is empty.
func dropExtensionSchema(ctx context.Context, tx pgx.Tx) error {
	err := pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		return execute(ctx, part, "drop schema if exists "+ExtensionsSchema+" restrict")
	})
	if pg.State(err) == "2BP01" { // dependent_objects_still_exist
		return nil
	}

	return err
}
