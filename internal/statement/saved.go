package statement

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// maxSaved bounds the saved queries of a project, 50,000 characters each. Requests at once may
// exceed it by their number.
const maxSaved = 500

// SavedQuery is a query that the developers of a project share.
type SavedQuery struct {
	UUID      uuid.UUID `json:"uuid"`
	Name      string    `json:"name"`
	Query     string    `json:"query"`
	CreatedBy uuid.UUID `json:"createdBy" doc:"User of the platform."`
	UpdatedBy uuid.UUID `json:"updatedBy"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

const savedColumns = ` uuid, name, query, created_by, updated_by, created_at, updated_at `

// CreateSaved saves a query. It fails with Conflict if the name is taken, and with Unprocessable if
// the project has its limit.
func CreateSaved(ctx context.Context, p *projectdb.Project, user uuid.UUID, name, query string) (SavedQuery, error) {
	id := uuid.Must(uuid.NewV7())
	audit.CreatedUUID(ctx, id)

	q, err := projectdb.ChangeOne[SavedQuery](ctx, p, audit.Change{SQL: `
		insert into socle.saved_queries (uuid, name, query, created_by, updated_by)
		select @id, @name, @query, @user, @user
		where (select count(*) from socle.saved_queries) < @most::bigint
		returning` + savedColumns,
		Args: pgx.StrictNamedArgs{"id": id, "name": name, "query": query, "user": user, "most": maxSaved}})
	if fault.Is(err, fault.NotFound) {
		return q, fault.New(fault.Unprocessable, "the project has its limit of %d saved queries", maxSaved).
			WithCode("quota_exceeded")
	}

	return q, savedFault(err)
}

// ListSaved returns a page of saved queries, sorted by name, createdAt or updatedAt, and the total
// number.
func ListSaved(ctx context.Context, p *projectdb.Project, page pg.Page) ([]SavedQuery, int64, error) {
	return pg.List[SavedQuery](ctx, p.Trusted(), pg.Listing{
		Columns: savedColumns,
		From:    `socle.saved_queries`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"},
		Tie:     "uuid",
	}, page, nil)
}

// GetSaved returns a saved query. It fails with NotFound without it.
func GetSaved(ctx context.Context, p *projectdb.Project, id uuid.UUID) (SavedQuery, error) {
	return pg.One[SavedQuery](ctx, p.Trusted(), `select`+savedColumns+`from socle.saved_queries where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// SavedUpdate has the values to change; nil leaves a value unchanged.
type SavedUpdate struct{ Name, Query *string }

// UpdateSaved changes a saved query. It fails with NotFound without it, and with Conflict if the
// name is taken.
func UpdateSaved(
	ctx context.Context, p *projectdb.Project, user, id uuid.UUID, u SavedUpdate,
) (SavedQuery, error) {
	q, err := projectdb.ChangeOne[SavedQuery](ctx, p, audit.Change{SQL: `
		update socle.saved_queries set name = coalesce(@name, name), query = coalesce(@query, query),
			updated_by = @user, updated_at = now()
		where uuid = @id returning` + savedColumns,
		Args: pgx.StrictNamedArgs{"id": id, "name": u.Name, "query": u.Query, "user": user}})

	return q, savedFault(err)
}

// DeleteSaved deletes a saved query. It fails with NotFound without it.
func DeleteSaved(ctx context.Context, p *projectdb.Project, id uuid.UUID) (SavedQuery, error) {
	return projectdb.ChangeOne[SavedQuery](ctx, p, audit.Change{
		SQL:  `delete from socle.saved_queries where uuid = @id returning` + savedColumns,
		Args: pgx.StrictNamedArgs{"id": id}})
}

// savedFault returns a refused change as a failure.
func savedFault(err error) error {
	if pg.Violates(err, "saved_queries_name_key") {
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another saved query").WithCause(err)
	}

	return err
}
