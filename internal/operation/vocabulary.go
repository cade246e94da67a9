package operation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/httpx"
)

// Failure statuses that operations share. The specification fixes the statuses for ten operations;
// all others declare those that apply.
var (
	SpecifiedErrors     = []int{400, 401, 500}
	SpecifiedBodyErrors = []int{400, 401, 422, 500}
	RestrictedErrors    = []int{400, 401, 403, 404, 500}
	CreateErrors        = []int{400, 401, 403, 409, 422, 500}
	MemberErrors        = []int{400, 401, 404, 500}                // reads that every member may do
	DDLErrors           = []int{400, 401, 403, 404, 409, 422, 500} // changes to a project's schema
	DDLDeleteErrors     = []int{400, 401, 403, 404, 409, 500}
)

// LongTimeout is the timeout for schema changes and other long operations.
const LongTimeout = 30 * time.Second

// ProjectInput is the input for an operation with a project in its path and nothing else.
type ProjectInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
}

// ClientOf returns the request's client.
func ClientOf(ctx context.Context) account.Client {
	request := httpx.From(ctx)
	return account.Client{
		Address: request.Client.String(),
		Network: httpx.Network(request.Client),
		Agent:   request.UserAgent,
		Local:   request.Direct && request.Client.IsLoopback(),
	}
}

// IsEmpty reports whether a body names no member.
func IsEmpty[T comparable](body T) bool {
	var none T
	return body == none
}
