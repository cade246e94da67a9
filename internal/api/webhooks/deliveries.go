package webhooks

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/webhook"
)

func (s *Server) registerDeliveries(p *operation.Pipeline) {
	operation.HandleInProject(p, listWebhookDeliveries, s.listWebhookDeliveries, nil)
	operation.HandleInProject(p, getWebhookDelivery, s.getWebhookDelivery, nil)
	operation.HandleInProject(p, retryWebhookDelivery, s.retryWebhookDelivery, nil)
	operation.HandleInProject(p, replayWebhook, s.replayWebhook, s.findReplayed)
}

const deliveryPath = webhookPath + "/deliveries/{deliveryUUID}"

var listWebhookDeliveries = operation.Operation{
	ID: "listWebhookDeliveries", Method: "GET", Path: webhookPath + "/deliveries",
	Summary: "List a webhook's deliveries",
	Access:  operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "Newest first. Those that have ended are kept for a week, and the last 10,000 of the project. If there are " +
		"more, `metadata.next` is the `cursor` of the next page.",
}

type listWebhookDeliveriesInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"webhookUUID" format:"uuid"`
	Limit   int       `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor  string    `query:"cursor" maxLength:"40" doc:"metadata.next of the previous page."`
	Status  string    `query:"status" enum:"pending,delivered,dead" doc:"Default: all."`
	Type    string    `query:"type" maxLength:"100" doc:"Type of the event."`
	From    string    `query:"from" maxLength:"40" doc:"Start of the range, inclusive (RFC 3339)."`
	To      string    `query:"to" maxLength:"40" doc:"End of the range, exclusive (RFC 3339)."`
}

// cursorMetadata has the cursor for the next page.
type cursorMetadata struct {
	Limit int     `json:"limit"`
	Next  *string `json:"next" nullable:"true" doc:"Cursor of the next page; null on the last page."`
}

func (s *Server) listWebhookDeliveries(
	ctx context.Context, p *projectdb.Project, in *listWebhookDeliveriesInput,
) (operation.Answer[[]webhook.Delivery, cursorMetadata], error) {
	none := operation.Answer[[]webhook.Delivery, cursorMetadata]{}
	from, err := parseTime(fault.Invalid, "from", in.From)
	if err != nil {
		return none, err
	}
	to, err := parseTime(fault.Invalid, "to", in.To)
	if err != nil {
		return none, err
	}
	cursor, err := parseCursor(in.Cursor)
	if err != nil {
		return none, err
	}

	page, next, err := webhook.ListDeliveries(ctx, p, in.UUID, webhook.Filter{Status: in.Status, Type: in.Type,
		From: from, To: to, Before: cursor, Limit: in.Limit})
	metadata := cursorMetadata{Limit: in.Limit}
	if next > 0 {
		text := strconv.FormatInt(next, 36)
		metadata.Next = &text
	}

	return operation.WithMetadata(page, metadata), err
}

// deliveryInput is the input when an operation takes only a delivery's path.
type deliveryInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Webhook uuid.UUID `path:"webhookUUID" format:"uuid"`
	UUID    uuid.UUID `path:"deliveryUUID" format:"uuid"`
}

var getWebhookDelivery = operation.Operation{
	ID: "getWebhookDelivery", Method: "GET", Path: deliveryPath, Summary: "Get a delivery of a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "With the body of the request, the attempts, and the beginning of the last response.",
}

func (s *Server) getWebhookDelivery(
	ctx context.Context, p *projectdb.Project, in *deliveryInput,
) (webhook.FullDelivery, error) {
	return webhook.GetDelivery(ctx, p, in.Webhook, in.UUID)
}

var retryWebhookDelivery = operation.Operation{
	ID: "retryWebhookDelivery", Method: "POST", Path: deliveryPath + "/retry", Summary: "Retry a delivery of a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors, Success: 200,
	Notes: "Attempts it at once, whatever its status, with the same id.",
}

func (s *Server) retryWebhookDelivery(
	ctx context.Context, p *projectdb.Project, in *deliveryInput,
) (webhook.Delivery, error) {
	return s.Webhooks.Retry(ctx, p, in.Webhook, in.UUID)
}

var replayWebhook = operation.Operation{
	ID: "replayWebhook", Method: "POST", Path: webhookPath + "/replay", Summary: "Replay a webhook's deliveries",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500}, Success: 200,
	Notes: "Delivers the ended deliveries again that were created in a range of time, with the same ids: an endpoint " +
		"that keeps ids ignores those that it has. From `log` it delivers what the webhook selects now of the events " +
		"in the log, which has a day at most: also those that it did not select then. `next` is the `cursor` for the " +
		"rest if as many deliveries wait as a webhook may have.",
	Example: `{"from": "2026-11-27T00:00:00Z", "status": "dead"}`,
}

type replayWebhookInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"webhookUUID" format:"uuid"`
	Body    struct {
		From   string `json:"from" maxLength:"40" doc:"Start of the range, inclusive (RFC 3339)."`
		To     string `json:"to,omitempty" maxLength:"40" doc:"End of the range, exclusive (RFC 3339). Default: now."`
		Status string `json:"status,omitempty" enum:"delivered,dead" doc:"Only for deliveries. Default: both."`
		Source string `json:"source,omitempty" enum:"deliveries,log" doc:"Default: deliveries."`
		Cursor string `json:"cursor,omitempty" maxLength:"100000" doc:"Only for the log: a place in it, from next or from a change that Realtime sent."`
	}
}

// replay is the result of replayWebhook.
type replay struct {
	Deliveries int64   `json:"deliveries" doc:"Number of deliveries that are made, or made again."`
	Next       *string `json:"next" nullable:"true" doc:"Cursor for the rest of the log; null at the end of the range."`
	Incomplete bool    `json:"incomplete" doc:"Whether the log may no longer have the beginning of the range."`
}

func (s *Server) findReplayed(ctx context.Context, p *projectdb.Project, in *replayWebhookInput) error {
	_, err := webhook.Get(ctx, p, in.UUID)
	return err
}

func (s *Server) replayWebhook(ctx context.Context, p *projectdb.Project, in *replayWebhookInput) (replay, error) {
	from, err := parseTime(fault.Unprocessable, "from", in.Body.From)
	if err != nil {
		return replay{}, err
	}
	to, err := parseTime(fault.Unprocessable, "to", in.Body.To)
	if err != nil {
		return replay{}, err
	}
	if to.IsZero() {
		to = time.Now()
	}

	if in.Body.Source != "log" {
		n, err := s.Webhooks.Replay(ctx, p, in.UUID, from, to, in.Body.Status)
		return replay{Deliveries: n}, err
	}

	r, err := s.Webhooks.ReplayLog(ctx, p, in.UUID, event.Range{Since: from, Before: to, Cursor: in.Body.Cursor})
	out := replay{Deliveries: r.Deliveries, Incomplete: r.Incomplete}
	if r.Next != "" {
		out.Next = &r.Next
	}

	return out, err
}

// parseTime parses an RFC 3339 text; an empty one is the zero time.
func parseTime(kind fault.Kind, name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}

	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1 {
		return time.Time{}, fault.OnField(kind, name, "invalid_format",
			"must be an RFC 3339 time such as 2026-11-27T05:20:00Z")
	}

	return at, nil
}

// parseCursor parses a cursor of a list, which is opaque to clients.
func parseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}

	before, err := strconv.ParseInt(text, 36, 64)
	if err != nil || before < 1 {
		return 0, fault.OnField(fault.Invalid, "cursor", "invalid_format", "is not a cursor of this list")
	}

	return before, nil
}
