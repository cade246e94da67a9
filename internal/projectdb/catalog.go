package projectdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// CatalogVersion is a query for the catalog version in a project's database, a text. Each
// transaction with DDL changes it at commit. The platform's login and the rows API's logins may run
// it. bit_xor takes half as long as sum.
const CatalogVersion = `select pg_catalog.bit_xor(n::pg_catalog.int8)::pg_catalog.text from socle.catalogue_version`

// CatalogChanges is a query for a number that each transaction changes at once before it changes
// the catalog version at commit. It runs in every request, and is twenty times as fast as
// [CatalogVersion].
const CatalogChanges = `pg_catalog.pg_sequence_last_value('socle.catalogue_changes'::pg_catalog.regclass)`

// maxVersionRows is the row count above which [FoldCatalogVersion] folds.
const maxVersionRows = 16

// FoldCatalogVersion folds the catalog version's rows into one if there are more than 16. The
// version stays the same. It must run as the platform's login.
func FoldCatalogVersion(ctx context.Context, q pg.Querier) error {
	// A concurrent fold waits for this one and then finds the deleted rows gone.
	_, err := pg.Exec(ctx, q, `
		with folded as (
			delete from socle.catalogue_version
			where (select count(*) from socle.catalogue_version) > @most
			returning n
		)
		insert into socle.catalogue_version (n) select bit_xor(n::bigint) from folded having count(*) > 0`,
		pgx.StrictNamedArgs{"most": maxVersionRows})

	return err
}

// BookkeepingTables are the tables in [Schema] that describe the database itself, or changes to it.
// Backups exclude their rows.
var BookkeepingTables = slices.Concat([]string{"migrations", "catalogue_version", OpenedVaultKeys, "edge_function_log",
	"edge_function_metrics"},
	EventTables, OutboxTables)

// OutboxTables are the tables with work that SQL has left for the server: another database must not
// repeat it.
var OutboxTables = []string{"http_requests", "http_responses", "unsent_messages"}

// EventTables are the tables of package event, a log of changes, and of what package webhook has
// made of it: worthless in another database.
var EventTables = []string{"events", "events_0", "events_1", "events_2", "events_3", "events_4", "events_5", "events_6",
	"events_7", "events_8", "events_9", "events_removed", "captures", "webhook_states", "webhook_deliveries"}
