// Package form owns a project's forms: fields, answer validation, responses, statistics and
// exports. The platform database maps a form's UUID to its project, since clients address a form by
// its UUID alone.
package form

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Form is a set of fields to fill in.
type Form struct {
	UUID             uuid.UUID  `json:"uuid" format:"uuid"`
	ProjectUUID      uuid.UUID  `json:"projectUuid" format:"uuid"`
	Name             string     `json:"name"`
	Description      *string    `json:"description" nullable:"true"`
	State            string     `json:"state" enum:"draft,open,closed" doc:"Only an open form accepts responses."`
	OpensAt          *time.Time `json:"opensAt" nullable:"true" doc:"Before this time an open form accepts no responses."`
	ClosesAt         *time.Time `json:"closesAt" nullable:"true" doc:"From this time on an open form accepts no responses."`
	MaxResponses     *int64     `json:"maxResponses" nullable:"true" doc:"Maximum number of complete responses."`
	SuccessMessage   *string    `json:"successMessage" nullable:"true" doc:"Message shown after submission."`
	Honeypot         *string    `json:"honeypot" nullable:"true" doc:"Name of a hidden input; responses that fill it in are not stored."`
	ContainerUUID    *uuid.UUID `json:"containerUuid" nullable:"true" doc:"Container of uploaded files."`
	Link             *string    `json:"link" nullable:"true" doc:"Secret of the public link, sent as the parameter link; null without a public link."`
	PagePath         *string    `json:"pagePath" nullable:"true" doc:"Path of the form's page, which contains the public link; null without one."`
	RedirectURL      *string    `json:"redirectUrl" db:"redirect_url" nullable:"true" doc:"Page that follows a response from the form's page or an HTML form; null: a page that shows successMessage."`
	NotifyEmails     []string   `json:"notifyEmails" nullable:"false" doc:"Addresses that get a mail about new responses."`
	Unconfirmed      []string   `json:"unconfirmedEmails" db:"unconfirmed_emails" nullable:"false" doc:"Addresses of notifyEmails that get no mails yet: nobody has confirmed them by the link in the mail that they got."`
	EmbedOrigins     []string   `json:"embedOrigins" nullable:"false" doc:"Origins whose pages may show the form's page in a frame."`
	Color            *string    `json:"color" nullable:"true" doc:"Accent of the form's page, such as #1f5fbf."`
	LogoUUID         *uuid.UUID `json:"logoUuid" nullable:"true" doc:"Picture at the top of the form's page, a file of the project."`
	Version          int        `json:"version" doc:"Version of the fields; each change increments it."`
	TotalResponses   int64      `json:"totalResponses" doc:"Complete responses."`
	BlockedResponses int64      `json:"blockedResponses" doc:"Submissions that were discarded because of the honeypot."`
	CreatedAt        time.Time  `json:"createdAt"`
	CreatedBy        uuid.UUID  `json:"createdBy" format:"uuid"`
	UpdatedAt        time.Time  `json:"updatedAt"`
	UpdatedBy        uuid.UUID  `json:"updatedBy" format:"uuid"`
}

const formColumns = `
	uuid, @project::uuid as project_uuid, name, description, state, opens_at, closes_at, max_responses,
	success_message, honeypot, container_uuid, link, redirect_url, notify_emails,
	array(select a from unnest(notify_emails) a where not exists (
		select from forms.recipients r where r.email = lower(a))) as unconfirmed_emails, embed_origins, color, logo_uuid,
	'/f/' || translate(rtrim(encode(uuid_send(uuid), 'base64'), '='), '+/', '-_') || link as page_path, version, total_responses, blocked_responses,
	created_at, created_by, updated_at, updated_by`

// FullForm is a form with fields in order.
type FullForm struct {
	Form
	Fields []Field `json:"fields"`
}

// NewForm holds a new form's values. An empty description means none.
type NewForm struct {
	Name        string // one line, 1 to 100 characters
	Description string // up to 500 characters
}

const (
	maxName        = 100  // characters
	maxDescription = 500  // characters
	maxForms       = 1000 // per project
)

// Check fails with Unprocessable on every invalid field.
func (n NewForm) Check() error {
	var p problems
	p.checkLine("name", n.Name, maxName)
	p.checkText("description", n.Description, maxDescription)

	return p.err()
}

// CreateForm creates a draft form on behalf of user. The caller chooses the UUID, which must
// already be in the platform database. It fails as [NewForm.Check] does, and with Unprocessable if
// the project has too many forms.
func CreateForm(ctx context.Context, p *projectdb.Project, user, id uuid.UUID, n NewForm) (Form, error) {
	if err := n.Check(); err != nil {
		return Form{}, err
	}

	f, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Form, error) {
		audit.CreatedUUID(ctx, id)
		// The lock makes the count exact. It conflicts with itself, and with no read or write.
		if _, err := pg.Exec(ctx, tx, `lock table forms.forms in share update exclusive mode`); err != nil {
			return Form{}, err
		}

		return pg.One[Form](ctx, tx, `
			insert into forms.forms (uuid, name, description, created_by, updated_by)
			select @id, @name, nullif(@description, ''), @user, @user
			where (select count(*) from forms.forms) < @max::bigint
			returning `+formColumns,
			pgx.StrictNamedArgs{
				"project": p.UUID, "id": id, "name": n.Name, "description": n.Description,
				"user": user, "max": maxForms,
			})
	})
	if fault.Is(err, fault.NotFound) {
		return Form{}, fault.New(fault.Unprocessable, "the project has the maximum of %d forms", maxForms).
			WithCode("quota_exceeded").WithCause(err)
	}

	return f, err
}

// ListForms returns a page of forms and their total number. Sort keys are name, state, createdAt
// and updatedAt.
func ListForms(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Form, int64, error) {
	return pg.List[Form](ctx, p.Trusted(), pg.Listing{
		Columns: formColumns,
		From:    `forms.forms`,
		Sorts: map[string]string{
			"name": `name collate "C"`, "state": "state", "createdAt": "created_at", "updatedAt": "updated_at",
		},
		Tie: "uuid",
	}, page, pgx.StrictNamedArgs{"project": p.UUID})
}

// GetForm returns a form. It fails with NotFound if it does not exist.
func GetForm(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Form, error) {
	return getForm(ctx, p.Trusted(), p, id)
}

func getForm(ctx context.Context, q pg.Querier, p *projectdb.Project, id uuid.UUID) (Form, error) {
	return pg.One[Form](ctx, q, `select `+formColumns+` from forms.forms where uuid = @id`,
		pgx.StrictNamedArgs{"project": p.UUID, "id": id})
}

// GetFullForm returns a form and the fields in one snapshot. It fails with NotFound if the form
// does not exist.
func GetFullForm(ctx context.Context, p *projectdb.Project, id uuid.UUID) (FullForm, error) {
	var f FullForm
	err := readTx(ctx, p, func(tx pgx.Tx) (err error) {
		if f.Form, err = getForm(ctx, tx, p, id); err != nil {
			return err
		}

		f.Fields, err = listFields(ctx, tx, id)
		return err
	})

	return f, err
}

// DeleteForm deletes a form with the fields. With force it deletes the responses too, and calls
// remove with their files in the same transaction. It fails with NotFound if the form does not
// exist, and without force with Conflict if it has responses.
func DeleteForm(ctx context.Context, p *projectdb.Project, id uuid.UUID, force bool, remove RemoveFiles) (Form, error) {
	var f Form
	err := p.InTx(ctx, func(tx pgx.Tx) (err error) {
		if force {
			// The row lock keeps new responses out.
			if _, err := pg.Value[uuid.UUID](ctx, tx, `select uuid from forms.forms where uuid = @form for update`,
				pgx.StrictNamedArgs{"form": id}); err != nil {
				return err
			}

			files, err := pg.Values[uuid.UUID](ctx, tx, `
				with gone as (delete from forms.responses where form_uuid = @form returning answers)
				select (a.value ->> 'fileUuid')::uuid from gone, jsonb_each(gone.answers) a
				where a.value ? 'fileUuid' and jsonb_typeof(a.value) = 'object'`,
				pgx.StrictNamedArgs{"form": id})
			if err != nil {
				return err
			}

			if err := remove(ctx, tx, files); err != nil {
				return err
			}
		}

		f, err = pg.One[Form](ctx, tx, `delete from forms.forms where uuid = @id returning `+formColumns,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id})
		return err
	})
	if pg.Violates(err, "responses_definition") {
		return Form{}, fault.New(fault.Conflict, "the form has responses; set force=true to delete them too").
			WithCode("in_use").WithCause(err)
	}

	return f, err
}

// RemoveFiles deletes files in the transaction that deletes the record they belong to.
type RemoveFiles func(ctx context.Context, tx pgx.Tx, files []uuid.UUID) error

// readTx runs f in a read-only transaction with one snapshot.
func readTx(ctx context.Context, p *projectdb.Project, f func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx, `set transaction isolation level repeatable read, read only`); err != nil {
			return err
		}
		return f(tx)
	})
}

// problems lists the rules that a request violates.
type problems []fault.Field

func (p *problems) add(member, code, message string) {
	*p = append(*p, fault.Field{Name: member, Code: code, Message: message})
}

// checkLine requires a non-blank line with 1 to limit characters.
func (p *problems) checkLine(member, s string, limit int) {
	switch {
	case s == "":
		p.add(member, "required", "is required")
	case strings.TrimSpace(s) == "" || !oneLine(s):
		p.add(member, "invalid_format", "must be one line of text")
	default:
		p.checkText(member, s, limit)
	}
}

// checkText requires text with at most limit characters and reports whether s is valid.
func (p *problems) checkText(member, s string, limit int) bool {
	switch {
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0): // PostgreSQL rejects both
		p.add(member, "invalid_format", "must be text without NUL")
	case utf8.RuneCountInString(s) > limit:
		p.add(member, "too_long", "must be at most "+plural(limit, "character"))
	default:
		return true
	}

	return false
}

// err returns the problems as one error, or nil.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}

	detail := p[0].Name + " " + p[0].Message
	if len(p) > 1 {
		detail += ", and " + plural(len(p)-1, "more problem")
	}

	return &fault.Error{Kind: fault.Unprocessable, Detail: detail, Fields: p}
}

func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
