package form

import (
	"context"
	"crypto/rand"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// FormUpdate is a request to change a form. An absent member keeps its value; null or empty text
// clears it.
type FormUpdate struct {
	Name           Opt[string] `json:"name,omitzero" doc:"1 to 100 characters on one line."`
	Description    Opt[string] `json:"description,omitzero" nullable:"true" doc:"Up to 500 characters."`
	State          Opt[string] `json:"state,omitzero" doc:"draft, open or closed. Only an open form accepts responses."`
	OpensAt        Opt[string] `json:"opens_at,omitzero" nullable:"true" doc:"RFC 3339. Before this time an open form accepts no responses."`
	ClosesAt       Opt[string] `json:"closes_at,omitzero" nullable:"true" doc:"RFC 3339, after opens_at. From this time on an open form accepts no responses."`
	MaxResponses   Opt[int64]  `json:"max_responses,omitzero" nullable:"true" doc:"Maximum number of complete responses, at least 1."`
	SuccessMessage Opt[string] `json:"success_message,omitzero" nullable:"true" doc:"Up to 1000 characters, shown after submission."`
	Honeypot       Opt[string] `json:"honeypot,omitzero" nullable:"true" doc:"Name of a hidden input, 1 to 50 letters, digits, _ or -. Responses that fill it in are not stored."`
	ContainerUUID  Opt[string] `json:"container_uuid,omitzero" nullable:"true" format:"uuid" doc:"Container of the project for uploaded files."`
	RedirectURL    Opt[string] `json:"redirect_url,omitzero" nullable:"true" doc:"http or https URL, up to 2000 characters: the page that follows a response from an HTML form."`
	Color          Opt[string] `json:"color,omitzero" nullable:"true" doc:"Accent of the form's page, # and six hexadecimal digits."`
	LogoUUID       Opt[string] `json:"logo_uuid,omitzero" nullable:"true" format:"uuid" doc:"File of the project at the top of the form's page: PNG, JPEG, GIF or WebP of at most 1 MiB."`

	NotifyEmails Opt[[]string] `json:"notify_emails,omitzero" nullable:"true" doc:"Up to 10 addresses that get a mail about new responses, once they have confirmed it by a mailed link."`
	EmbedOrigins Opt[[]string] `json:"embed_origins,omitzero" nullable:"true" doc:"Up to 20 origins, such as https://example.com, whose pages may show the form's page in a frame."`
}

const maxMessage = 1000 // characters

var (
	states       = []string{"draft", "open", "closed"}
	honeypotName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,50}$`)
)

// UpdateForm changes a form on behalf of user. It fails with NotFound if the form does not exist,
// and with Unprocessable on every invalid member or if u is empty.
func UpdateForm(
	ctx context.Context, p *projectdb.Project, user, id uuid.UUID, u FormUpdate,
) (Form, error) {
	var form Form
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		f, err := pg.One[Form](ctx, tx, `select `+formColumns+` from forms.forms where uuid = @id for no key update`,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id})
		if err != nil {
			return err
		}

		if err := u.apply(&f); err != nil {
			return err
		}

		form, err = pg.One[Form](ctx, tx, `
			update forms.forms
			set name = @name, description = @description, state = @state, opens_at = @opens, closes_at = @closes,
			    max_responses = @max, success_message = @message, honeypot = @honeypot, container_uuid = @container,
			    redirect_url = @redirect, notify_emails = @notify, embed_origins = @embed, color = @color, logo_uuid = @logo,
			    updated_by = @user, updated_at = now()
			where uuid = @id
			returning `+formColumns,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id, "name": f.Name, "description": f.Description,
				"state": f.State, "opens": f.OpensAt, "closes": f.ClosesAt, "max": f.MaxResponses,
				"message": f.SuccessMessage, "honeypot": f.Honeypot, "container": f.ContainerUUID,
				"redirect": f.RedirectURL, "notify": f.NotifyEmails, "embed": f.EmbedOrigins, "color": f.Color,
				"logo": f.LogoUUID, "user": user})
		if err != nil || f.Honeypot == nil {
			return err
		}

		exists, err := pg.Value[bool](ctx, tx, `
			select exists (select from forms.fields where form_uuid = @id and name = @honeypot)`,
			pgx.StrictNamedArgs{"id": id, "honeypot": f.Honeypot})
		if exists {
			return fault.OnField(fault.Unprocessable, "honeypot", "already_exists", "is the name of a field")
		}

		return err
	})
	switch {
	case pg.Violates(err, "forms_times"):
		return Form{}, fault.OnField(fault.Unprocessable, "opens_at", outOfRange,
			"must be before closes_at").WithCause(err)
	case pg.Violates(err, "forms_container"):
		return Form{}, fault.OnField(fault.Unprocessable, "container_uuid", "unknown",
			"must be a container of the project").WithCause(err)
	case pg.Violates(err, "forms_logo"):
		return Form{}, fault.OnField(fault.Unprocessable, "logo_uuid", "unknown",
			"must be a file of the project").WithCause(err)
	}

	return form, err
}

// apply changes f. It fails with Unprocessable on every invalid member.
func (u FormUpdate) apply(f *Form) error {
	if u == (FormUpdate{}) {
		return fault.NothingToChange()
	}

	var p problems
	if u.Name.Named {
		f.Name = value(u.Name)
		p.checkLine("name", f.Name, maxName)
	}

	if u.State.Named {
		if f.State = value(u.State); !slices.Contains(states, f.State) {
			p.add("state", "invalid_value", "must be draft, open or closed")
		}
	}

	applyText(&p, "description", &f.Description, u.Description, maxDescription)
	applyText(&p, "success_message", &f.SuccessMessage, u.SuccessMessage, maxMessage)

	if u.Honeypot.Named {
		if f.Honeypot = emptyToNull(u.Honeypot).Value; f.Honeypot != nil && !honeypotName.MatchString(*f.Honeypot) {
			p.add("honeypot", "invalid_format", "must be 1 to 50 letters, digits, _ or -")
		}
	}

	applyTime(&p, "opens_at", &f.OpensAt, u.OpensAt)
	applyTime(&p, "closes_at", &f.ClosesAt, u.ClosesAt)

	if u.MaxResponses.Named {
		if f.MaxResponses = u.MaxResponses.Value; f.MaxResponses != nil && *f.MaxResponses < 1 {
			p.add("max_responses", outOfRange, "must be at least 1")
		}
	}

	applyUUID(&p, "container_uuid", &f.ContainerUUID, u.ContainerUUID)
	u.applyPage(&p, f)

	return p.err()
}

// value returns a member's value, or the zero value for null.
func value[T any](o Opt[T]) T {
	if o.Value == nil {
		var zero T
		return zero
	}

	return *o.Value
}

func applyText(p *problems, member string, to **string, in Opt[string], limit int) {
	if !in.Named {
		return
	}

	if *to = emptyToNull(in).Value; *to != nil {
		p.checkText(member, **to, limit)
	}
}

func applyUUID(p *problems, member string, to **uuid.UUID, in Opt[string]) {
	if !in.Named {
		return
	}

	*to = nil

	if in = emptyToNull(in); in.Value == nil {
		return
	}

	id, err := uuid.Parse(*in.Value)
	if err != nil || len(*in.Value) != len(id.String()) {
		p.add(member, "invalid_format", "must be a UUID")
	}

	*to = &id
}

func applyTime(p *problems, member string, to **time.Time, in Opt[string]) {
	if !in.Named {
		return
	}

	*to = nil

	if in = emptyToNull(in); in.Value == nil {
		return
	}

	t, err := time.Parse(time.RFC3339, *in.Value)
	if err != nil {
		p.add(member, "invalid_format", "must be a time in RFC 3339 such as 2026-11-21T05:20:00Z")
		return
	}

	t = t.UTC().Truncate(time.Microsecond)
	*to = &t
}

// LinkForm creates a new public link for a form on behalf of user and revokes the previous one. It
// fails with NotFound if the form does not exist.
func LinkForm(ctx context.Context, p *projectdb.Project, user, id uuid.UUID) (Form, error) {
	link := rand.Text()
	return setLink(ctx, p, user, id, &link)
}

// UnlinkForm revokes a form's public link. It fails with NotFound if the form does not exist.
func UnlinkForm(ctx context.Context, p *projectdb.Project, user, id uuid.UUID) (Form, error) {
	return setLink(ctx, p, user, id, nil)
}

func setLink(ctx context.Context, p *projectdb.Project, user, id uuid.UUID, link *string) (Form, error) {
	var f Form
	err := p.InTx(ctx, func(tx pgx.Tx) (err error) {
		f, err = pg.One[Form](ctx, tx, `
			update forms.forms set link = @link, updated_by = @user, updated_at = now() where uuid = @id
			returning `+formColumns, pgx.StrictNamedArgs{"project": p.UUID, "id": id, "link": link, "user": user})
		return err
	})
	return f, err
}

// CheckLink fails with NotFound unless link is the form's public link.
func CheckLink(ctx context.Context, p *projectdb.Project, id uuid.UUID, link string) error {
	_, err := pg.Value[uuid.UUID](ctx, p.Trusted(), `select uuid from forms.forms where uuid = @id and link = @link`,
		pgx.StrictNamedArgs{"id": id, "link": link})
	return err
}
