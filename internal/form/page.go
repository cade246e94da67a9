package form

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/weburl"
)

const (
	maxPageSize     = 1 << 20 // bytes in a form's field texts
	maxURL          = 2000    // characters
	maxNotifyEmails = 10
	maxEmbedOrigins = 20
)

var colorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// applyPage changes the form page's settings.
func (u FormUpdate) applyPage(p *problems, f *Form) {
	applyText(p, "redirect_url", &f.RedirectURL, u.RedirectURL, maxURL)
	if f.RedirectURL != nil && u.RedirectURL.Named && (!isURL(*f.RedirectURL) || !oneLine(*f.RedirectURL)) {
		p.add("redirect_url", "invalid_format", "must be an http or https URL")
	}

	if u.Color.Named {
		f.Color = emptyToNull(u.Color).Value
	}
	if f.Color != nil {
		color := strings.ToLower(*f.Color)
		if f.Color = &color; !colorPattern.MatchString(color) {
			p.add("color", "invalid_format", "must be # and six hexadecimal digits")
		}
	}

	applyUUID(p, "logo_uuid", &f.LogoUUID, u.LogoUUID)
	applyList(p, "notify_emails", &f.NotifyEmails, u.NotifyEmails, maxNotifyEmails, isEmail, "an e-mail address")
	applyList(p, "embed_origins", &f.EmbedOrigins, u.EmbedOrigins, maxEmbedOrigins, isOrigin,
		"an origin such as https://example.com")
}

// applyList changes a list without duplicates. valid checks an item; kind is the item type in
// messages.
func applyList(
	p *problems, member string, to *[]string, in Opt[[]string], limit int, valid func(string) bool, kind string,
) {
	if !in.Named {
		return
	}

	*to = []string{}
	for i, item := range value(in) {
		switch {
		case i == limit:
			p.add(member, "too_many", fmt.Sprintf("must be at most %d", limit))
			return
		case !valid(item):
			p.add(fmt.Sprintf("%s.%d", member, i), "invalid_format", "must be "+kind)
		case !slices.Contains(*to, item):
			*to = append(*to, item)
		}
	}
}

// isOrigin reports whether s is an origin as browsers write it. It is safe within a
// Content-Security-Policy, which knows no IPv6 addresses.
func isOrigin(s string) bool {
	u, err := weburl.Parse(s)
	return err == nil && u.IsWeb() && u.Origin() == s && !strings.ContainsAny(u.Host, "[_")
}

// Page is a form as the form's page shows it to respondents.
type Page struct {
	Form
	Fields []Field
	Closed error // why the form accepts no responses; nil: it accepts them
}

// ParsePageLink returns the form's UUID and the public link from the last segment in a page's path.
func ParsePageLink(segment string) (form uuid.UUID, link string, ok bool) {
	const idLength = 22 // UUID length in base64
	if len(segment) <= idLength || len(segment) > 4*idLength {
		return uuid.Nil, "", false
	}

	id, err := base64.RawURLEncoding.Strict().DecodeString(segment[:idLength])
	if err != nil {
		return uuid.Nil, "", false
	}

	form, err = uuid.FromBytes(id)
	return form, segment[idLength:], err == nil
}

// GetPage returns a form's page by the form's public link. It fails with NotFound for a wrong link,
// and with TooLarge for a form whose page would take too much memory: anybody may open it. It
// leaves out settings that break the rules, as an imported backup may have them.
func GetPage(ctx context.Context, p *projectdb.Project, id uuid.UUID, link string) (Page, error) {
	var page Page
	err := readTx(ctx, p, func(tx pgx.Tx) (err error) {
		page.Form, err = pg.One[Form](ctx, tx,
			`select `+formColumns+` from forms.forms where uuid = @id and link = @link`,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id, "link": link})
		if err != nil {
			return err
		}

		size, err := pg.Value[int64](ctx, tx, `
			select coalesce(sum(octet_length(label) + coalesce(octet_length(description), 0)
				+ coalesce(octet_length(default_value), 0) + coalesce(octet_length(options::text), 0)), 0)
			from forms.fields where form_uuid = @id`, pgx.StrictNamedArgs{"id": id})
		if err != nil {
			return err
		}

		if size > maxPageSize {
			return fault.New(fault.TooLarge, "the form is too large for a page: its fields have more than %d bytes",
				maxPageSize)
		}

		page.Fields, err = listFields(ctx, tx, id)
		return err
	})
	if err != nil {
		return page, err
	}

	page.EmbedOrigins = slices.DeleteFunc(page.EmbedOrigins, func(s string) bool { return !isOrigin(s) })
	if page.RedirectURL != nil && !isURL(*page.RedirectURL) {
		page.RedirectURL = nil
	}

	if reason := page.closedReason(time.Now()); reason != nil {
		page.Closed = reason
	}

	return page, nil
}
