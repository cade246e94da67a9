package form

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// A response to a form with addresses to notify has a row in forms.notifications, written in the
// response's transaction. A job per form, notifyArgs, takes the rows, at most once per window, and
// enqueues a mail to each address. So many responses make few mails, and none is forgotten if a
// server is killed.

// Limits for mails about responses, which send strangers' words to addresses that a project
// chooses.
var (
	notifyFormLimit      = ratelimit.Limit{Name: "response mails", Most: 1, Window: 5 * time.Minute}
	notifyRecipientLimit = ratelimit.Limit{Name: "response mail recipient", Most: 100, Window: 24 * time.Hour}
)

const (
	maxNotified     = 1000 // responses that one mail counts
	maxShown        = 20   // responses that one mail shows
	maxShownAnswers = 50   // per response
	maxShownAnswer  = 2000 // bytes per answer
	maxShownBytes   = 64 << 10
	notificationTTL = 24 * time.Hour
)

// NotifierConfig has a [Notifier]'s dependencies.
type NotifierConfig struct {
	Platform  *platform.Store
	Projects  *projectdb.Registry
	Queue     *queue.Queue
	Attempts  ratelimit.Attempts
	Sender    *mail.Sender
	PublicURL string // without trailing slash
	Log       *slog.Logger
}

// Notifier sends mails about new responses.
type Notifier struct{ NotifierConfig }

// notifyArgs is the job that collects the new responses to a form.
type notifyArgs struct {
	Project uuid.UUID `json:"project"`
	Form    uuid.UUID `json:"form"`
}

func (notifyArgs) Kind() string { return "form_notification" }

// mailArgs is the job for a mail to one address. It has no answers, since the queue stores it.
type mailArgs struct {
	Project   uuid.UUID   `json:"project"`
	Form      uuid.UUID   `json:"form"`
	To        string      `json:"to"`
	Responses []uuid.UUID `json:"responses"` // that the mail shows
	Total     int         `json:"total"`     // that the mail is about
}

func (mailArgs) Kind() string { return "form_mail" }

var notifyWorkers = queue.Workers{Queue: "form_mails", PerServer: 8, PerAccount: 2}

// NewNotifier returns a notifier and registers the workers.
func NewNotifier(c NotifierConfig) *Notifier {
	n := &Notifier{c}
	queue.Register(c.Queue, queue.Options{Workers: notifyWorkers, MaxAttempts: 8, Unique: true, Timeout: time.Minute},
		n.collect)
	queue.Register(c.Queue, queue.Options{Workers: notifyWorkers, MaxAttempts: 8, Timeout: time.Minute}, n.send)

	return n
}

// Enqueue enqueues mails about the new responses to a form.
func (n *Notifier) Enqueue(ctx context.Context, project, form uuid.UUID) error {
	_, err := n.Queue.Insert(ctx, notifyArgs{project, form})
	return err
}

// Sweep enqueues a project's forms whose job was lost, and forgets responses that are too old for a
// mail, as in a restored backup.
func (n *Notifier) Sweep(ctx context.Context, p *projectdb.Project) error {
	if _, err := pg.Exec(ctx, p.Trusted(), `delete from forms.notifications where created_at < now() - @ttl::interval`,
		pgx.StrictNamedArgs{"ttl": notificationTTL}); err != nil {
		return err
	}

	forms, err := pg.Values[uuid.UUID](ctx, p.Trusted(), `select distinct form_uuid from forms.notifications`)
	for _, form := range forms {
		err = errors.Join(err, n.Enqueue(ctx, p.UUID, form))
	}

	return err
}

// collect takes the new responses to a form and enqueues a mail to each address in the form.
func (n *Notifier) collect(ctx context.Context, job *queue.Job[notifyArgs]) error {
	project, err := n.Platform.FormProject(ctx, job.Args.Form)
	if fault.Is(err, fault.NotFound) || (err == nil && project != job.Args.Project) {
		return nil // deleted or paused; the next sweep after a resumption enqueues it again
	}
	if err != nil {
		return err
	}

	p := n.Projects.Open(project)
	responses, err := n.newResponses(ctx, p, job.Args.Form)
	if err != nil || len(responses) == 0 {
		return err
	}

	limitErr := n.Attempts.Count(ctx, notifyFormLimit, job.Args.Form.String())
	if fault.Is(limitErr, fault.TooMany) {
		return queue.Snooze(fault.Of(limitErr).RetryAfter)
	}
	if limitErr != nil {
		return limitErr
	}

	if err := n.enqueueMails(ctx, p, job.Args.Form, responses); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, p.Trusted(), `delete from forms.notifications where response_uuid = any(@responses::uuid[])`,
		pgx.StrictNamedArgs{"responses": responses}); err != nil {
		return err
	}

	// A response meanwhile has enqueued nothing, since this job was unfinished.
	if more, err := n.newResponses(ctx, p, job.Args.Form); err != nil || len(more) > 0 {
		return errors.Join(err, queue.Snooze(notifyFormLimit.Window))
	}

	return job.Complete(ctx)
}

// ConfirmRecipient records that an address agreed to mails about responses to the project's forms.
func ConfirmRecipient(ctx context.Context, tx pgx.Tx, address string) error {
	_, err := pg.Exec(ctx, tx, `insert into forms.recipients (email) values (lower(@address::text)) on conflict do nothing`,
		pgx.StrictNamedArgs{"address": address})
	return err
}

// newResponses returns the unmailed responses to a form, oldest first.
func (n *Notifier) newResponses(ctx context.Context, p *projectdb.Project, form uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select response_uuid from forms.notifications where form_uuid = @form
		order by created_at, response_uuid limit @max`,
		pgx.StrictNamedArgs{"form": form, "max": maxNotified})
}

// enqueueMails enqueues a mail to each of a form's addresses, all or none. It leaves out addresses
// beyond their limit.
func (n *Notifier) enqueueMails(ctx context.Context, p *projectdb.Project, form uuid.UUID, about []uuid.UUID) error {
	f, err := GetForm(ctx, p, form)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	owner, err := n.Platform.OwnerOf(ctx, p.UUID)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	var recipients []string
	for _, to := range f.NotifyEmails[:min(len(f.NotifyEmails), maxNotifyEmails)] { // more in an imported backup
		if slices.Contains(f.Unconfirmed, to) {
			continue
		}

		err := n.Attempts.Count(ctx, notifyRecipientLimit, owner.String()+"\x00"+address.Canonical(to))
		switch {
		case err == nil:
			recipients = append(recipients, to)
		case fault.Is(err, fault.TooMany):
			n.Log.Warn("too many mails about responses to an address", "project", p.UUID, "form", form)
		default:
			return err
		}
	}

	return pg.InTx(ctx, n.Queue.Pool, func(tx pgx.Tx) error {
		for _, to := range recipients {
			args := mailArgs{p.UUID, form, to, about[:min(len(about), maxShown)], len(about)}
			if _, err := n.Queue.InsertTx(ctx, tx, args); err != nil {
				return err
			}
		}

		return nil
	})
}

// send sends a mail about responses, unless all have been deleted.
func (n *Notifier) send(ctx context.Context, job *queue.Job[mailArgs]) error {
	project, err := n.Platform.FormProject(ctx, job.Args.Form)
	if fault.Is(err, fault.NotFound) || (err == nil && project != job.Args.Project) {
		return nil
	}
	if err != nil {
		return err
	}

	m, err := n.render(ctx, n.Projects.Open(project), job.Args)
	if err != nil || m.To == "" {
		return err
	}

	m.ID = fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
	if err = n.Sender.Send(ctx, m); err == nil {
		return nil
	}

	n.Log.Warn("send mail", "template", "responses", "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return queue.Cancel(err)
	}

	return err
}

// render returns a job's mail, or one without a recipient if no response is left.
func (n *Notifier) render(ctx context.Context, p *projectdb.Project, a mailArgs) (mail.Message, error) {
	f, err := GetForm(ctx, p, a.Form)
	if err != nil {
		return mail.Message{}, fault.Ignore(err, fault.NotFound)
	}

	var paragraphs []string
	missing, size := 0, 0
	for _, id := range a.Responses {
		if size > maxShownBytes {
			break
		}

		r, err := GetResponse(ctx, p, a.Form, id)
		if fault.Is(err, fault.NotFound) {
			missing++
			continue
		}
		if err != nil {
			return mail.Message{}, err
		}

		text := summarize(r)
		paragraphs, size = append(paragraphs, text), size+len(text)
	}

	if len(paragraphs) == 0 {
		return mail.Message{}, nil
	}

	total, what := a.Total-missing, "New response"
	if total > 1 {
		what = fmt.Sprintf("%d new responses", total)
	}
	if more := total - len(paragraphs); more > 0 {
		paragraphs = append(paragraphs, fmt.Sprintf("Not shown: %d more.", more))
	}

	return mail.Render("responses", a.To, map[string]string{"what": what, "form": f.Name, "server": n.PublicURL},
		paragraphs...)
}

// summarize formats a response's answers as lines.
func summarize(r Response) string {
	var b strings.Builder
	if r.SubmittedAt != nil {
		b.WriteString(r.SubmittedAt.UTC().Format("2 January 2006 15:04 UTC") + "\n")
	}

	for i, a := range r.Answers {
		if i == maxShownAnswers {
			fmt.Fprintf(&b, "and %d more answers\n", len(r.Answers)-i)
			break
		}

		text := a.Text()
		if len(text) > maxShownAnswer {
			text = text[:maxShownAnswer]
			for !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
			text += "…"
		}

		// Indented, so that an answer can't pass for a label.
		b.WriteString(a.Label + ": " + strings.ReplaceAll(text, "\n", "\n    ") + "\n")
	}

	return b.String()
}
