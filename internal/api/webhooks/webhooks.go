package webhooks

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/webhook"
)

func (s *Server) registerWebhooks(p *operation.Pipeline) {
	operation.HandleInProject(p, createWebhook, s.createWebhook, nil)
	operation.HandleInProject(p, listWebhooks, s.listWebhooks, nil)
	operation.HandleInProject(p, getWebhook, s.getWebhook, nil)
	operation.HandleInProject(p, updateWebhook, s.updateWebhook, s.findWebhook)
	operation.HandleInProject(p, deleteWebhook, s.deleteWebhook, nil)
	operation.HandleInProject(p, rotateWebhookSecret, s.rotateWebhookSecret, nil)
	operation.HandleInProject(p, testWebhook, s.testWebhook, nil)
}

const (
	webhooksPath = "/projects/{projectUUID}/webhooks"
	webhookPath  = webhooksPath + "/{webhookUUID}"
)

// secretMetadata has a signing secret, which is shown once.
type secretMetadata struct {
	Secret string `json:"secret" doc:"The signing secret by Standard Webhooks. It is shown only in this response."`
}

type secretAnswer = operation.Answer[webhook.Webhook, secretMetadata]

func answerSecret(w webhook.Webhook, secret string, err error) (secretAnswer, error) {
	return secretAnswer{Content: w, Metadata: secretMetadata{secret},
		Header: http.Header{"Cache-Control": {"no-store"}}}, err
}

// tableInput selects changes of a table's rows.
type tableInput struct {
	Schema string `json:"schema,omitempty" maxLength:"63" doc:"Default: public."`
	Table  string `json:"table" minLength:"1" maxLength:"63"`
	Event  string `json:"event,omitempty" enum:"*,INSERT,UPDATE,DELETE,TRUNCATE" doc:"Kind of changes; * is all but TRUNCATE, and the default."`
	Filter string `json:"filter,omitempty" maxLength:"16384" doc:"Conditions as in Realtime, such as status=eq.paid; several are joined with commas."`
}

func tables(in *[]tableInput) *[]webhook.WatchedTable {
	if in == nil {
		return nil
	}

	all := make([]webhook.WatchedTable, len(*in))
	for i, t := range *in {
		all[i] = webhook.WatchedTable(t)
	}

	return &all
}

var createWebhook = operation.Operation{
	ID: "createWebhook", Method: "POST", Path: webhooksPath, Summary: "Create a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.CreateErrors, Grows: operation.Always,
	Notes: "From now on the endpoint gets a signed POST for each event, at least once, and again until it answers " +
		"with a status from 200 to 299: for about a day, then the delivery is `dead`. The types of events are in " +
		"[events.md](events.md).",
	Example: `{"name": "orders", "endpoint": "https://example.com/hooks", "tables": [{"table": "orders", "event": "INSERT"}],
		"events": ["socle.user.created.v1"]}`,
}

type createWebhookInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name    string             `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the project."`
		URL     string             `json:"endpoint" maxLength:"2000" doc:"Its https URL, or functions://NAME for an edge function of the project."`
		Events  *[]string          `json:"events,omitempty" maxItems:"100" doc:"Types of events, other than those of rows."`
		Tables  *[]tableInput      `json:"tables,omitempty" maxItems:"50" doc:"Tables whose changes it gets: whole rows, past policies."`
		Queues  *[]string          `json:"queues,omitempty" maxItems:"20" doc:"Queues whose messages it takes: each goes to the endpoint and leaves the queue."`
		Headers *map[string]string `json:"headers,omitempty" doc:"Headers for its requests, such as Authorization. They are stored sealed."`
		Ordered bool               `json:"ordered,omitempty" doc:"Whether an event waits until all before it are delivered or given up."`
	}
}

func (s *Server) createWebhook(
	ctx context.Context, p *projectdb.Project, in *createWebhookInput,
) (secretAnswer, error) {
	b := in.Body
	return answerSecret(s.Webhooks.Create(ctx, p, webhook.Change{Name: &b.Name, URL: &b.URL, Events: b.Events,
		Tables: tables(b.Tables), Queues: b.Queues, Headers: b.Headers, Ordered: &b.Ordered}))
}

var listWebhooks = operation.Operation{
	ID: "listWebhooks", Method: "GET", Path: webhooksPath, Summary: "List a project's webhooks",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
}

type listWebhooksInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,createdAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listWebhooks(
	ctx context.Context, p *projectdb.Project, in *listWebhooksInput,
) (operation.Answer[[]webhook.Webhook, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	all, total, err := webhook.List(ctx, p, page)
	return operation.ListOf(all, page, total), err
}

// webhookInput is the input when an operation takes only a webhook's path.
type webhookInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"webhookUUID" format:"uuid"`
}

var getWebhook = operation.Operation{
	ID: "getWebhook", Method: "GET", Path: webhookPath, Summary: "Get a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
}

func (s *Server) getWebhook(ctx context.Context, p *projectdb.Project, in *webhookInput) (webhook.Webhook, error) {
	return webhook.Get(ctx, p, in.UUID)
}

var updateWebhook = operation.Operation{
	ID: "updateWebhook", Method: "PUT", Path: webhookPath, Summary: "Update a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Omitted members stay unchanged. A webhook that is resumed gets what happened in the last day of its pause, " +
		"and an event `socle.webhook.gap.v1` if more is missing.",
	Example: `{"paused": true}`,
}

type updateWebhookInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"webhookUUID" format:"uuid"`
	Body    struct {
		Name    *string            `json:"name,omitempty" minLength:"1" maxLength:"100" doc:"Unique in the project."`
		URL     *string            `json:"endpoint,omitempty" maxLength:"2000" doc:"Its https URL, or functions://NAME for an edge function of the project."`
		Events  *[]string          `json:"events,omitempty" maxItems:"100" doc:"Types of events, other than those of rows."`
		Tables  *[]tableInput      `json:"tables,omitempty" maxItems:"50" doc:"Tables whose changes it gets: whole rows, past policies."`
		Queues  *[]string          `json:"queues,omitempty" maxItems:"20" doc:"Queues whose messages it takes: each goes to the endpoint and leaves the queue."`
		Headers *map[string]string `json:"headers,omitempty" doc:"Headers for its requests; they replace all former ones."`
		Ordered *bool              `json:"ordered,omitempty" doc:"Whether an event waits until all before it are delivered or given up."`
		Paused  *bool              `json:"paused,omitempty"`
	}
}

func (s *Server) findWebhook(ctx context.Context, p *projectdb.Project, in *updateWebhookInput) error {
	_, err := webhook.Get(ctx, p, in.UUID)
	return err
}

func (s *Server) updateWebhook(
	ctx context.Context, p *projectdb.Project, in *updateWebhookInput,
) (webhook.Webhook, error) {
	b := in.Body
	return s.Webhooks.Update(ctx, p, in.UUID, webhook.Change{Name: b.Name, URL: b.URL, Events: b.Events,
		Tables: tables(b.Tables), Queues: b.Queues, Headers: b.Headers, Ordered: b.Ordered, Paused: b.Paused})
}

var deleteWebhook = operation.Operation{
	ID: "deleteWebhook", Method: "DELETE", Path: webhookPath, Summary: "Delete a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "Its deliveries are deleted too. A request on its way still arrives.",
}

func (s *Server) deleteWebhook(ctx context.Context, p *projectdb.Project, in *webhookInput) (webhook.Webhook, error) {
	return webhook.Delete(ctx, p, in.UUID)
}

var rotateWebhookSecret = operation.Operation{
	ID: "rotateWebhookSecret", Method: "POST", Path: webhookPath + "/secret",
	Summary: "Rotate a webhook's signing secret",
	Access:  operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors, Success: 200,
	Notes: "Requests are signed with both secrets for a day.",
}

func (s *Server) rotateWebhookSecret(
	ctx context.Context, p *projectdb.Project, in *webhookInput,
) (secretAnswer, error) {
	return answerSecret(webhook.RotateSecret(ctx, p, in.UUID))
}

var testWebhook = operation.Operation{
	ID: "testWebhook", Method: "POST", Path: webhookPath + "/test", Summary: "Send a test to a webhook",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Grows: operation.Always,
	Notes: "The content is the delivery, which shows the response once there is one.",
}

func (s *Server) testWebhook(ctx context.Context, p *projectdb.Project, in *webhookInput) (webhook.Delivery, error) {
	return s.Webhooks.Test(ctx, p, in.UUID)
}
