package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pg"
)

// Failure statuses that operations share. The specification fixes the lists of ten operations;
// all others declare the statuses that apply.
var (
	specifiedErrors     = []int{400, 401, 500}
	specifiedBodyErrors = []int{400, 401, 422, 500}
	restrictedErrors    = []int{400, 401, 403, 404, 500}
	createErrors        = []int{400, 401, 403, 409, 422, 500}
	memberErrors        = []int{400, 401, 404, 500}                // reads that every member may do
	ddlErrors           = []int{400, 401, 403, 404, 409, 422, 500} // changes of a project's schema
	ddlDeleteErrors     = []int{400, 401, 403, 404, 409, 500}
)

const longTimeout = 30 * time.Second // limit for schema changes and other long operations

type (
	// Answer is [operation.Answer].
	Answer[C, M any] = operation.Answer[C, M]
	// PageQuery is [operation.PageQuery].
	PageQuery = operation.PageQuery
	// NewestFirstQuery is [operation.NewestFirstQuery].
	NewestFirstQuery = operation.NewestFirstQuery
	// PageMetadata is [operation.PageMetadata].
	PageMetadata = operation.PageMetadata
	// ProjectInBody is [operation.ProjectInBody].
	ProjectInBody = operation.ProjectInBody

	nothing = operation.Nothing
)

func caller(ctx context.Context) account.Caller { return operation.Caller(ctx) }

// member returns the caller as an actor on the files of its project.
func member(ctx context.Context) actor.Actor { return actor.Member(caller(ctx).User) }

func listOf[T any](items []T, page pg.Page, total int64) Answer[[]T, PageMetadata] {
	return operation.ListOf(items, page, total)
}

func metadataOf(p pg.Page, total int64) PageMetadata { return operation.MetadataOf(p, total) }

func optionalUUID(text string) uuid.NullUUID { return operation.OptionalUUID(text) }
