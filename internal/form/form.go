// Package form knows a project's forms: what they are called, which fields they
// have, and which values a field takes. Where a form lives is known to the
// platform database, since a form is reached by its UUID alone.
package form

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// Form is a set of fields that people fill in.
type Form struct {
	UUID        uuid.UUID `json:"uuid" format:"uuid"`
	ProjectUUID uuid.UUID `json:"projectUuid" format:"uuid"`
	Name        string    `json:"name"`
	Description *string   `json:"description" nullable:"true"`
	CreatedAt   time.Time `json:"createdAt"`
	CreatedBy   uuid.UUID `json:"createdBy" format:"uuid"`
	UpdatedAt   time.Time `json:"updatedAt"`
	UpdatedBy   uuid.UUID `json:"updatedBy" format:"uuid"`
}

const formColumns = `uuid, @project::uuid as project_uuid, name, description, created_at, created_by, updated_at, updated_by`

// NewForm is what a form is made of. An empty description is none.
type NewForm struct {
	Name        string // 1 to 100 characters on one line
	Description string // up to 500 characters
}

// Longest texts, in characters.
const (
	maxName        = 100
	maxDescription = 500
)

// Check fails with Unprocessable on every field that breaks a rule.
func (n NewForm) Check() error {
	var p problems
	p.checkLine("name", n.Name, maxName)
	p.checkText("description", n.Description, maxDescription)
	return p.err()
}

// CreateForm makes a form in project p on behalf of user. The caller chooses the form's UUID, which
// the platform database has to know before. It fails as [NewForm.Check] does.
func CreateForm(ctx context.Context, p *tenant.Project, user, id uuid.UUID, n NewForm) (Form, error) {
	if err := n.Check(); err != nil {
		return Form{}, err
	}
	return tenant.Change(ctx, p, func(tx pgx.Tx) (Form, error) {
		audit.CreatedUUID(ctx, id)
		return pg.One[Form](ctx, tx, `
		insert into forms.forms (uuid, name, description, created_by, updated_by)
		values (@id, @name, nullif(@description, ''), @user, @user)
		returning `+formColumns,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id, "name": n.Name, "description": n.Description, "user": user})
	})
}

// GetForm returns a form of project p. It fails with NotFound if there is none.
func GetForm(ctx context.Context, p *tenant.Project, id uuid.UUID) (Form, error) {
	return pg.One[Form](ctx, p.Trusted(), `select `+formColumns+` from forms.forms where uuid = @id`,
		pgx.StrictNamedArgs{"project": p.UUID, "id": id})
}

// problems are the rules that a request breaks, one entry each.
type problems []fault.Field

func (p *problems) add(member, code, message string) {
	*p = append(*p, fault.Field{Name: member, Code: code, Message: message})
}

// checkLine wants a line of 1 to limit characters, not all of them blank.
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

// checkText wants text of at most limit characters, and reports whether s is that.
func (p *problems) checkText(member, s string, limit int) bool {
	switch {
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0): // PostgreSQL keeps neither
		p.add(member, "invalid_format", "must be text without NUL")
	case utf8.RuneCountInString(s) > limit:
		p.add(member, "too_long", "must be at most "+count(limit, "character"))
	default:
		return true
	}
	return false
}

// err returns the problems as one failure, or nil.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	detail := p[0].Name + " " + p[0].Message
	if len(p) > 1 {
		detail += ", and " + count(len(p)-1, "more problem")
	}
	return &fault.Error{Kind: fault.Unprocessable, Detail: detail, Fields: p}
}

func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
