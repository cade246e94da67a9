package form

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// listUUIDs returns the UUIDs of all forms in a database.
func listUUIDs(ctx context.Context, q pg.Querier) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, q, `select uuid from forms.forms`)
}

// renewStatements replace forms' UUIDs and clear their links, so that shared links do not carry
// over.
var renewStatements = []string{
	"update forms.fields t set form_uuid = r.anew from pg_temp.renewed r where r.uuid = t.form_uuid",
	"update forms.definitions t set form_uuid = r.anew from pg_temp.renewed r where r.uuid = t.form_uuid",
	"update forms.responses t set form_uuid = r.anew from pg_temp.renewed r where r.uuid = t.form_uuid",
	"update forms.notifications t set form_uuid = r.anew from pg_temp.renewed r where r.uuid = t.form_uuid",
	"update forms.forms t set uuid = r.anew, link = null from pg_temp.renewed r where r.uuid = t.uuid",
}

// renew gives new UUIDs to forms. Triggers and foreign keys are disabled in the transaction.
func renew(ctx context.Context, tx pgx.Tx, forms []uuid.UUID) error {
	if len(forms) == 0 {
		return nil
	}

	if _, err := pg.Exec(ctx, tx,
		"create temporary table renewed on commit drop as select uuid, gen_random_uuid() as anew from forms.forms"); err != nil {
		return err
	}

	keep := "delete from pg_temp.renewed where uuid <> all(@forms::uuid[])"
	if _, err := pg.Exec(ctx, tx, keep, pgx.StrictNamedArgs{"forms": forms}); err != nil {
		return err
	}

	return execAll(ctx, tx, renewStatements)
}

// repairStatements delete dangling references and recompute counters.
var repairStatements = []string{
	`delete from forms.fields f where not exists (select from forms.forms o where o.uuid = f.form_uuid)`,
	`delete from forms.definitions d where not exists (select from forms.forms o where o.uuid = d.form_uuid)`,
	`delete from forms.responses r where not exists (select from forms.forms o where o.uuid = r.form_uuid)`,
	`delete from forms.notifications`,
	`delete from forms.recipients`,
	`update forms.forms f set logo_uuid = null where not exists (select from storage.files o where o.uuid = f.logo_uuid)`,
	`update forms.forms f set total_responses = (select count(*) from forms.responses r where r.form_uuid = f.uuid and r.state = 'complete')`,
}

// repair repairs rows that no trigger or foreign key has checked, such as an imported backup's.
// Triggers are disabled in the transaction.
func repair(ctx context.Context, tx pgx.Tx) error { return execAll(ctx, tx, repairStatements) }

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := pg.Exec(ctx, tx, sql); err != nil {
			return err
		}
	}

	return nil
}
