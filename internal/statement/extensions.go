package statement

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

// A project's logins may not create or drop extensions, so the platform does. It can't take part in
// the owner's transaction. Extensions are therefore created before the transaction that contains
// their statements, moved and, if nothing depends on them, dropped. They stay so if the transaction
// fails. In a script without a transaction, the statements run in order.

// Platform runs a function in a transaction on the platform's login.
type Platform func(ctx context.Context, f func(tx pgx.Tx) error) error

// extensions runs statements on extensions.
type extensions struct {
	field    string // field name in errors
	platform Platform
	full     bool              // nothing may grow the database
	placed   map[string]string // see [Script]
}

// prepare runs a transaction's steps on extensions before it begins. It returns all steps, with the
// outcome in these.
func (e extensions) prepare(ctx context.Context, steps []Step) ([]Step, error) {
	all := slices.Clone(steps)
	for i, s := range steps {
		var err error
		switch s.Action {
		case dialect.CreateExtension:
			all[i], err = e.create(ctx, i, s)
		case dialect.DropExtension:
			all[i], err = e.dropUnused(ctx, i, s)
		case dialect.MoveExtension:
			all[i], err = e.move(ctx, i, s)
		case dialect.Run:
			all[i], err = e.createForBlock(ctx, i, s)
		}

		if err != nil {
			return nil, err
		}
	}

	return all, nil
}

// builtIn are the extensions whose functions every project has, with the note about them.
var builtIn = map[string]string{
	"pgmq":           "every project has its functions in schema pgmq",
	"pg_net":         "schema net is the platform's",
	"supabase_vault": "schema vault is the platform's",
}

// create installs an extension unless it is installed, or emulates it. Another platform's extension
// is left out.
func (e extensions) create(ctx context.Context, i int, s Step) (Step, error) {
	name, target := s.Extension.Name, s.Extension.Schema
	err := e.platform(ctx, func(tx pgx.Tx) error {
		at, err := schemaOf(ctx, tx, name)
		switch {
		case err != nil:
			return err
		case at != "": // installed
		case schema.IsEmulated(name) && e.full:
			return projectdb.ErrOverQuota
		case schema.IsEmulated(name):
			s = s.leftOut(schema.EmulationNote(name))
			return schema.EmulateExtension(ctx, tx, name)
		case !slices.Contains(schema.AllowedExtensions, name) && dialect.IsPlatformExtension(name):
			s = s.leftOut("extension " + name + " is left out: " + cmp.Or(builtIn[name], "projects can't have it"))
			return nil
		case e.full:
			return projectdb.ErrOverQuota
		default:
			target = cmp.Or(target, e.placed[name], schema.DefaultSchema)
			extension, err := schema.CreateExtensionIn(ctx, tx, name, target)
			if err != nil {
				return err
			}
			at = *extension.Schema
		}

		if target != "" && target != at {
			s.Notes = []string{"extension " + name + " is in the schema " + at + ", not in " + target}
		}

		return nil
	})

	return s, e.explain(i, s, err)
}

// createForBlock installs the extensions that a DO block creates, unless its project can't have
// them: the block goes on without, as it may have a condition or a handler.
func (e extensions) createForBlock(ctx context.Context, i int, s Step) (Step, error) {
	for _, extension := range s.Extensions {
		result, err := e.create(ctx, i, Step{Statement: s.Statement, Verdict: dialect.Verdict{Extension: extension}})
		switch {
		case fault.Is(err, fault.Unprocessable):
			result.Notes = []string{"extension " + extension.Name + " is left out: " + fault.Of(err).Detail}
		case err != nil:
			return s, err
		}
		s.Notes = append(slices.Clip(s.Notes), result.Notes...)
	}

	return s, nil
}

// move moves an extension to another schema.
func (e extensions) move(ctx context.Context, i int, s Step) (Step, error) {
	name, target := s.Extension.Name, s.Extension.Schema
	err := e.platform(ctx, func(tx pgx.Tx) error {
		at, err := schemaOf(ctx, tx, name)
		switch {
		case err != nil:
			return err
		case at == "" && schema.IsEmulated(name):
			s = s.leftOut("extension " + name + " stays in the schema " + schema.ExtensionsSchema)
			return nil
		case at == "" && dialect.IsPlatformExtension(name):
			s = s.leftOut("extension " + name + " is left out: projects can't have it")
			return nil
		case at == target:
			s = s.leftOut("extension " + name + " is in the schema " + target + " already")
			return nil
		}

		extension, err := schema.SetExtensionSchema(ctx, tx, name, target)
		if err == nil && *extension.Schema != target {
			s.Notes = []string{"extension " + name + " is in the schema " + *extension.Schema + ", not in " + target}
		}
		return err
	})

	return s, e.explain(i, s, err)
}

// schemaOf returns an installed extension's schema, or "".
func schemaOf(ctx context.Context, q pg.Querier, name string) (string, error) {
	schemas, err := pg.Values[string](ctx, q, `
		select n.nspname::text from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
		where e.extname = @name`, pgx.StrictNamedArgs{"name": name})

	return strings.Join(schemas, ""), err
}

const (
	dropMessage = "an extension in use can't be dropped in a transaction"
	dropHint    = "Drop it in a migration of its own, whose first line is -- socle: no-transaction, or by DELETE /extensions."
)

// checkDrops fails with Unprocessable if a transaction step drops an extension that a project can
// have, installed or not.
func checkDrops(field string, steps []Step) error {
	for i, s := range steps {
		mayBeAbsent := s.Extension.Tolerant || dialect.IsPlatformExtension(s.Extension.Name)
		if s.Action == dialect.DropExtension && !mayBeAbsent {
			return reject(field, i, s, dropMessage, "", dropHint)
		}
	}

	return nil
}

// dropUnused drops an extension before a transaction, if it is installed. It fails with
// Unprocessable if other objects depend on it, which the transaction might drop.
func (e extensions) dropUnused(ctx context.Context, i int, s Step) (Step, error) {
	dropped, err := e.drop(ctx, i, s)
	if fault.Is(err, fault.Unprocessable) {
		return s, reject(e.field, i, s, dropMessage, fault.Of(err).Detail, dropHint)
	}

	return dropped, err
}

func nothingToDrop(s Step) string {
	if schema.IsEmulated(s.Extension.Name) {
		return "extension " + s.Extension.Name + " is not dropped: functions of the platform stand for it, and stay"
	}

	return "extension " + s.Extension.Name + " is not installed: there is nothing to drop"
}

// drop drops an extension, if it is installed.
func (e extensions) drop(ctx context.Context, i int, s Step) (Step, error) {
	err := e.platform(ctx, func(tx pgx.Tx) error {
		_, err := schema.DeleteExtension(ctx, tx, s.Extension.Name)
		return err
	})
	if fault.Is(err, fault.NotFound) {
		return s.leftOut(nothingToDrop(s)), nil
	}

	return s, e.explain(i, s, err)
}

// explain turns the failure of a step on an extension into an error on its field.
func (e extensions) explain(i int, s Step, err error) error {
	f := fault.Of(err)
	if err == nil || f.Kind == fault.Internal || f.Kind == fault.Unavailable || f.Kind == fault.TooLarge {
		return err
	}

	detail := strings.TrimPrefix(f.Detail, "name ")
	return reject(e.field, i, s, "extension "+s.Extension.Name+": "+detail, "", "")
}
