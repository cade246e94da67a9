package tenant

import (
	"context"

	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// CatalogueVersion is a query for the version of the schema of a project's database, a text. Each transaction with DDL changes
// it when it commits. The platform's login and those of the rows API may run it. Each request does: bit_xor takes half the time of sum.
const CatalogueVersion = `select pg_catalog.bit_xor(n::pg_catalog.int8)::pg_catalog.text from socle.catalogue_version`

// versionsMost is how many rows the version may have before [FoldCatalogueVersion] folds them.
const versionsMost = 16

// FoldCatalogueVersion folds the rows of the version into one if they are many. The version stays the same. It runs on a
// connection of the platform's login.
func FoldCatalogueVersion(ctx context.Context, q pg.Querier) error {
	// Whoever folds at the same time waits, and finds no row that was deleted here.
	_, err := pg.Exec(ctx, q, `
		with folded as (
			delete from socle.catalogue_version
			where (select count(*) from socle.catalogue_version) > @most
			returning n
		)
		insert into socle.catalogue_version (n) select bit_xor(n::bigint) from folded having count(*) > 0`,
		pgx.StrictNamedArgs{"most": versionsMost})

	return err
}

// BookkeepingTables are the tables of [Schema] that tell about a database itself. No backup has their rows.
var BookkeepingTables = []string{"migrations", "catalogue_version"}
