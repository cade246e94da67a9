// Package requestlog owns the projects' request log: the logged facts, their rows in the platform
// database, their bounds and their retention.
//
// The log holds a request's path and query string without values, see cut.go: its readers learn the
// table and the columns of a request, but not the rows. It holds no headers, tokens or bodies.
package requestlog

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// rowsPrefix is the prefix of the rows API, whose query strings have a grammar.
const rowsPrefix = "/rest/v1"

// Request is an answered request to a project.
type Request struct {
	UUID         uuid.UUID  `json:"uuid" doc:"Id of the request, as in the response header X-Request-Id."`
	At           time.Time  `json:"at"`
	Method       string     `json:"method"`
	Route        string     `json:"route" doc:"Pattern of the route; of the interfaces of applications with the name of the table, function or bucket: /rest/v1/messages, /rest/v1/rpc/search, /storage/v1/object/photos."`
	Schema       *string    `json:"schema" nullable:"true" doc:"Schema of the table or function, if it is not the default one."`
	Query        *string    `json:"query" nullable:"true" doc:"Query string with its values cut: author=eq.…&select=id,name."`
	Status       int16      `json:"status"`
	ErrorCode    *string    `json:"errorCode" nullable:"true" doc:"Code of the failure: an SQLSTATE such as 42501, or a code of the interface."`
	ErrorMessage *string    `json:"errorMessage" nullable:"true" doc:"Message of the failure, without values of the request."`
	Duration     int64      `json:"duration" doc:"Microseconds."`
	Rows         *int64     `json:"rows" nullable:"true" doc:"Rows in the response of the rows API, or rows that it changed."`
	Bytes        *int64     `json:"bytes" nullable:"true" doc:"Size of the response's body."`
	Caller       string     `json:"caller" enum:"user,key,token,anonymous" doc:"Kind of caller: a user of the platform, a key of the project, a token of the project's own users, or anonymous."`
	Role         *string    `json:"role" nullable:"true" doc:"Role in the database: anon, authenticated or service_role."`
	EndUserUUID  *uuid.UUID `json:"endUserUuid" nullable:"true" doc:"User of the application, by its token."`
	UserUUID     *uuid.UUID `json:"userUuid" nullable:"true" doc:"User of the platform."`
	UserName     *string    `json:"userName" nullable:"true"`
	KeyUUID      *uuid.UUID `json:"keyUuid" nullable:"true" doc:"Key of the project."`
	KeyName      *string    `json:"keyName" nullable:"true" doc:"null: the key was deleted since."`
	Client       *string    `json:"client" nullable:"true" doc:"Address of the client."`
	UserAgent    *string    `json:"userAgent" nullable:"true"`
}

// Filter narrows a project's request log. Zero members match all.
type Filter struct {
	From, To        time.Time // To is exclusive
	MinStatus       int
	Status          string // 404, or a class: 4xx
	Method          string
	Route           string // prefix
	Table, Function string // schema.name, or a name in the default schema
	Code            string
	EndUser, User   uuid.NullUUID
	Key             uuid.NullUUID
	Role            string
	Before          Key
	Limit           int
}

// Key is a request's position in the list. The zero value comes before all requests.
type Key struct {
	At   time.Time
	UUID uuid.UUID
}

const requestColumns = `
	r.uuid, r.at, r.method, r.route, r.schema_name as schema, r.query, r.status, r.error_code, r.error_message, r.duration,
	r.row_count as rows, r.bytes, r.caller, r.role, r.end_user_uuid, r.user_uuid, u.username as user_name, r.key_uuid,
	null::text as key_name, host(r.client) as client, r.user_agent`

const requestTables = `
	platform.requests r
	left join platform.users u on u.uuid = r.user_uuid`

// NameKeys sets the key names in requests. A key that was deleted since has none.
func NameKeys(requests []Request, names map[uuid.UUID]string) {
	for i := range requests {
		if id := requests[i].KeyUUID; id != nil {
			if name, ok := names[*id]; ok {
				requests[i].KeyName = &name
			}
		}
	}
}

// List returns requests to a project without key names, newest first, and the key for the next
// page, nil at the end. It fails with Invalid for a status that is no number and no class.
func List(ctx context.Context, db *platform.DB, project uuid.UUID, f Filter) ([]Request, *Key, error) {
	low, high, err := parseStatus(f.Status)
	if err != nil {
		return nil, nil, err
	}

	if f.Before.At.IsZero() {
		f.Before.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if f.To.IsZero() {
		f.To = f.Before.At
	}

	route, schema := targetRoute(f)
	requests, err := pg.All[Request](ctx, db.Querier(), `
		select`+requestColumns+`
		from`+requestTables+`
		where r.project_uuid = @project and r.at >= @from and r.at < @to and (r.at, r.uuid) < (@at, @uuid)
			and r.status between @low::integer and @high::integer and (@method = '' or r.method = @method)
			and (@route = '' or r.route = @route) and (@schema = '' or r.schema_name = @schema)
			and (@prefix = '' or starts_with(r.route, @prefix)) and (@code = '' or r.error_code = @code)
			and (@role = '' or r.role = @role) and (@end_user::uuid is null or r.end_user_uuid = @end_user)
			and (@user::uuid is null or r.user_uuid = @user) and (@key::uuid is null or r.key_uuid = @key)
		order by r.at desc, r.uuid desc limit @limit::bigint + 1`,
		pgx.StrictNamedArgs{"project": project, "from": f.From, "to": f.To, "at": f.Before.At, "uuid": f.Before.UUID,
			"low": max(low, f.MinStatus), "high": high, "method": strings.ToUpper(f.Method), "route": route,
			"schema": schema, "prefix": f.Route, "code": f.Code, "role": f.Role, "end_user": f.EndUser, "user": f.User,
			"key": f.Key, "limit": f.Limit})
	if err != nil || len(requests) <= f.Limit {
		return requests, nil, err
	}

	last := requests[f.Limit-1]
	return requests[:f.Limit], &Key{last.At, last.UUID}, nil
}

// Get returns a request to a project. It fails with NotFound if the log does not have it.
func Get(ctx context.Context, db *platform.DB, project, id uuid.UUID) (Request, error) {
	const slack = time.Millisecond // a UUID holds its time in milliseconds
	seconds, nanoseconds := id.Time().UnixTime()
	at := time.Unix(seconds, nanoseconds)

	return pg.One[Request](ctx, db.Querier(), `
		select`+requestColumns+`
		from`+requestTables+`
		where r.project_uuid = @project and r.uuid = @uuid and r.at >= @from and r.at <= @to`,
		pgx.StrictNamedArgs{"project": project, "uuid": id, "from": at.Add(-slack), "to": at.Add(2 * slack)})
}

// parseStatus parses a status such as 404, or a class such as 4xx.
func parseStatus(text string) (low, high int, err error) {
	const least, most, class = 100, 599, 100
	if text == "" {
		return least, most, nil
	}

	if digit, ok := strings.CutSuffix(strings.ToLower(text), "xx"); ok {
		n, err := strconv.Atoi(digit)
		if err == nil && n*class >= least && n*class <= most && len(digit) == 1 {
			return n * class, n*class + class - 1, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= least && n <= most {
		return n, n, nil
	}

	return 0, 0, fault.OnField(fault.Invalid, "status", "invalid_format", "must be a status such as 404, or a class such as 4xx")
}

// targetRoute returns the route and schema that a table or function filter matches.
func targetRoute(f Filter) (route, schema string) {
	name, prefix := f.Table, rowsPrefix+"/"
	if f.Function != "" {
		name, prefix = f.Function, rowsPrefix+"/rpc/"
	}
	if name == "" {
		return "", ""
	}

	if schema, rest, ok := strings.Cut(name, "."); ok && schema != "public" {
		return prefix + rest, schema
	} else if ok {
		name = rest
	}

	return prefix + name, ""
}
