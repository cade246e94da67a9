package projects

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/explain"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/requestlog"
)

func (s *Server) registerRequests(p *operation.Pipeline) {
	operation.HandleInProject(p, listRequests, s.listRequests, nil)
	operation.HandleInProject(p, explainRequest, s.explainRequest, nil)
	operation.HandleInProject(p, listRequestSeries, s.listRequestSeries, nil)
}

var listRequests = operation.Operation{
	ID: "listRequests", Method: "GET",
	Path: "/projects/{projectUUID}/requests", Summary: "List a project's requests",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "Newest first, with the requests of applications: table, function or bucket, query string without its " +
		"values, failure, role and end user. Requests are retained for slightly more than a week, or for the number " +
		"of days in the setting `request_days`, and listed about a second after their response. Of a project with " +
		"many requests a sample is kept. If there are more, `metadata.next` is the `cursor` of the next page.",
}

type listRequestsInput struct {
	UUID      uuid.UUID `path:"projectUUID" format:"uuid"`
	Limit     int       `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor    string    `query:"cursor" maxLength:"40" doc:"metadata.next of the previous page."`
	MinStatus int       `query:"minStatus" minimum:"100" maximum:"599" default:"100" doc:"List requests with this response status or a higher one."`
	Status    string    `query:"status" maxLength:"3" doc:"A status such as 404, or a class such as 4xx."`
	Code      string    `query:"code" maxLength:"100" doc:"Code of the failure, such as 42501 or PGRST202."`
	Method    string    `query:"method" maxLength:"16"`
	Table     string    `query:"table" maxLength:"200" doc:"Table or view of the rows API: name, or schema.name."`
	Function  string    `query:"function" maxLength:"200" doc:"Function of the rows API: name, or schema.name."`
	Route     string    `query:"route" maxLength:"200" doc:"Start of the route, such as /storage/v1."`
	Role      string    `query:"role" maxLength:"63" doc:"Role in the database: anon, authenticated or service_role."`
	EndUser   *string   `query:"endUserUuid" format:"uuid" doc:"User of the application."`
	User      *string   `query:"userUuid" format:"uuid" doc:"User of the platform."`
	Key       *string   `query:"keyUuid" format:"uuid" doc:"Key of the project."`
	From      string    `query:"from" maxLength:"40" doc:"Start of the range, inclusive (RFC 3339)."`
	To        string    `query:"to" maxLength:"40" doc:"End of the range, exclusive (RFC 3339)."`
}

var explainRequest = operation.Operation{
	ID: "explainRequest", Method: "GET",
	Path: "/projects/{projectUUID}/requests/{requestUUID}/explanation", Summary: "Explain a request",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "Tells why a request of the log answered as it did: the shape of its statement, its role, the policies that " +
		"apply, missing privileges, and commands that mend them. It reads the catalog as it is now, and never runs the " +
		"statement again. The id is that of the header `X-Request-Id`.",
}

type explainRequestInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"requestUUID" format:"uuid"`
}

func (s *Server) explainRequest(
	ctx context.Context, p *projectdb.Project, in *explainRequestInput,
) (explain.Explanation, error) {
	r, err := requestlog.Get(ctx, s.Platform.DB(), p.UUID, in.UUID)
	if err != nil {
		return explain.Explanation{}, err
	}

	return explain.Request(ctx, p.Trusted(), p.UUID, r)
}

// requestsMetadata has the cursor for the next page.
type requestsMetadata struct {
	Limit int     `json:"limit"`
	Next  *string `json:"next" nullable:"true" doc:"Cursor of the next page; null on the last page."`
}

func (s *Server) listRequests(
	ctx context.Context, p *projectdb.Project, in *listRequestsInput,
) (operation.Answer[[]requestlog.Request, requestsMetadata], error) {
	none := operation.Answer[[]requestlog.Request, requestsMetadata]{}

	if in.Table != "" && in.Function != "" {
		return none, fault.OnField(fault.Invalid, "function", "conflict",
			"can't be combined with a table: a request is for one of them")
	}

	from, err := parseTime("from", in.From)
	if err != nil {
		return none, err
	}

	to, err := parseTime("to", in.To)
	if err != nil {
		return none, err
	}

	cursor, err := parseCursor(in.Cursor)
	if err != nil {
		return none, err
	}

	filter := requestlog.Filter{From: from, To: to, MinStatus: in.MinStatus, Status: in.Status, Code: in.Code,
		Method: in.Method, Table: in.Table, Function: in.Function, Route: in.Route, Role: in.Role,
		EndUser: uuidFilter(in.EndUser), User: uuidFilter(in.User), Key: uuidFilter(in.Key),
		Before: cursor, Limit: in.Limit}

	requests, next, err := requestlog.List(ctx, s.Platform.DB(), p.UUID, filter)
	if err != nil {
		return none, err
	}

	names, err := appkey.KeyNames(ctx, s.Platform.DB(), p.UUID)
	requestlog.NameKeys(requests, names)

	return operation.WithMetadata(requests, requestsMetadata{in.Limit, formatCursor(next)}), err
}

var listRequestSeries = operation.Operation{
	ID: "listRequestSeries", Method: "GET",
	Path: "/projects/{projectUUID}/request-series", Summary: "Count a project's requests over time",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 429, 500},
	Notes: "Counts of the logged requests, oldest first: the last hour by the minute, the last day by a quarter of " +
		"an hour, or the last week by the hour. Of a project with many requests a sample is logged. The newest 250,000 " +
		"are counted: before `metadata.incompleteBefore` there are more.",
}

type listRequestSeriesInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
	Span string    `query:"span" enum:"hour,day,week" default:"day"`
}

// seriesMetadata describes the buckets of a series.
type seriesMetadata struct {
	BucketSeconds    int        `json:"bucketSeconds"`
	IncompleteBefore *time.Time `json:"incompleteBefore"`
}

func (s *Server) listRequestSeries(
	ctx context.Context, p *projectdb.Project, in *listRequestSeriesInput,
) (operation.Answer[[]requestlog.Bucket, seriesMetadata], error) {
	span := requestlog.Spans[in.Span]
	buckets, incomplete, err := s.Requests.Series(ctx, p.Key(ctx), p.UUID, span, time.Now())

	return operation.WithMetadata(buckets, seriesMetadata{int(span.Bucket.Seconds()), incomplete}), err
}

// uuidFilter returns the UUID in an optional parameter.
func uuidFilter(text *string) uuid.NullUUID {
	if text == nil {
		return uuid.NullUUID{}
	}
	return operation.OptionalUUID(*text)
}

// parseTime parses an RFC 3339 parameter; an empty one is the zero time.
func parseTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}

	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1 {
		return time.Time{}, fault.OnField(fault.Invalid, name, "invalid_format",
			"must be an RFC 3339 time such as 2026-11-21T05:20:00Z")
	}

	return at, nil
}

// A cursor encodes a request's time in microseconds and UUID. It is opaque to clients.

func formatCursor(k *requestlog.Key) *string {
	if k == nil {
		return nil
	}

	text := base64.RawURLEncoding.EncodeToString(
		append(binary.BigEndian.AppendUint64(nil, uint64(k.At.UnixMicro())), k.UUID[:]...),
	)
	return &text
}

func parseCursor(text string) (requestlog.Key, error) {
	if text == "" {
		return requestlog.Key{}, nil
	}

	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	at := time.Time{}
	if len(b) == 24 {
		at = time.UnixMicro(int64(binary.BigEndian.Uint64(b)))
	}

	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return requestlog.Key{}, fault.OnField(fault.Invalid, "cursor", "invalid_format",
			"is not a cursor of this list")
	}

	return requestlog.Key{At: at, UUID: uuid.UUID(b[8:])}, nil
}
