package projects

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerRequests(p *operation.Pipeline) {
	operation.HandleInProject(p, listRequests, s.listRequests, nil)
}

var listRequests = operation.Operation{
	ID: "listRequests", Method: "GET",
	Path: "/projects/{projectUUID}/requests", Summary: "List a project's requests",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "Newest first, including requests to the rows API. Requests are retained for slightly more than a week, " +
		"or for the number of days in the setting `request_days`, and listed about a second after their response. " +
		"If there are more, `metadata.next` is the `cursor` of the next page.",
}

type listRequestsInput struct {
	UUID      uuid.UUID `path:"projectUUID" format:"uuid"`
	Limit     int       `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor    string    `query:"cursor" maxLength:"40" doc:"metadata.next of the previous page."`
	MinStatus int       `query:"minStatus" minimum:"100" maximum:"599" default:"100" doc:"List requests with this response status or a higher one."`
	Method    string    `query:"method" maxLength:"16"`
	From      string    `query:"from" maxLength:"40" doc:"Start of the range, inclusive (RFC 3339)."`
	To        string    `query:"to" maxLength:"40" doc:"End of the range, exclusive (RFC 3339)."`
}

// requestsMetadata has the cursor of the next page.
type requestsMetadata struct {
	Limit int     `json:"limit"`
	Next  *string `json:"next" nullable:"true" doc:"Cursor of the next page; null on the last page."`
}

func (s *Server) listRequests(
	ctx context.Context, p *projectdb.Project, in *listRequestsInput,
) (operation.Answer[[]platform.Request, requestsMetadata], error) {
	none := operation.Answer[[]platform.Request, requestsMetadata]{}

	from, err := parseTime("from", in.From)
	if err != nil {
		return none, err
	}

	to, err := parseTime("to", in.To)
	if err != nil {
		return none, err
	}

	before, err := parseCursor(in.Cursor)
	if err != nil {
		return none, err
	}

	requests, next, err := s.Platform.ListRequests(ctx, p.UUID, platform.RequestFilter{
		From: from, To: to, MinStatus: in.MinStatus, Method: in.Method, Before: before, Limit: in.Limit})
	return operation.WithMetadata(requests, requestsMetadata{in.Limit, formatCursor(next)}), err
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

// A cursor encodes the microseconds of a request's time and its UUID. It is opaque to clients.

func formatCursor(k *platform.RequestKey) *string {
	if k == nil {
		return nil
	}

	text := base64.RawURLEncoding.EncodeToString(
		append(binary.BigEndian.AppendUint64(nil, uint64(k.At.UnixMicro())), k.UUID[:]...),
	)
	return &text
}

func parseCursor(text string) (platform.RequestKey, error) {
	if text == "" {
		return platform.RequestKey{}, nil
	}

	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	at := time.Time{}
	if len(b) == 24 {
		at = time.UnixMicro(int64(binary.BigEndian.Uint64(b)))
	}

	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return platform.RequestKey{}, fault.OnField(fault.Invalid, "cursor", "invalid_format",
			"is not a cursor of this list")
	}

	return platform.RequestKey{At: at, UUID: uuid.UUID(b[8:])}, nil
}
