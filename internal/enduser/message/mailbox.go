package message

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxMails   = 200 // mails in a project's mailbox
	putTimeout = 10 * time.Second
)

// Mail is a mail or a text message in a project's mailbox, which was not sent.
type Mail struct {
	UUID      uuid.UUID `json:"uuid"`
	Recipient string    `json:"recipient"`
	Kind      string    `json:"kind" doc:"confirmation, invite, magic_link, recovery, email_change, reauthentication or sms."`
	Subject   string    `json:"subject"`
	HTML      string    `json:"html"`
	Text      string    `json:"text"`
	Error     string    `json:"error" doc:"Why the last attempt to send it failed. Such a message has no text here, and disappears once it is sent. Empty: the project has no server to send it."`
	CreatedAt time.Time `json:"createdAt"`
}

const mailColumns = ` id as uuid, recipient, kind, subject, html, body as text, error, created_at `

// Mailbox has a project's mails and text messages that were not sent.
type Mailbox struct{ Project *projectdb.Project }

// List returns a page of mails and the total count.
func (b Mailbox) List(ctx context.Context, page pg.Page) ([]Mail, int64, error) {
	return pg.List[Mail](ctx, b.Project.EndUserRows(), pg.Listing{
		Columns: mailColumns, From: `auth.mails`,
		Sorts: map[string]string{"createdAt": "created_at", "recipient": "recipient"}, Tie: "id",
	}, page, pgx.StrictNamedArgs{})
}

// Get returns a mail. It fails with NotFound for an unknown one.
func (b Mailbox) Get(ctx context.Context, id uuid.UUID) (Mail, error) {
	return pg.One[Mail](ctx, b.Project.EndUserRows(), `select`+mailColumns+`from auth.mails where id = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// put adds a mail and removes the oldest ones beyond the bound. A mail that is there gets the
// error.
func (b Mailbox) put(ctx context.Context, m Mail) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()

	return b.Project.EndUsersTx(ctx, func(tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx, `
			insert into auth.mails (id, recipient, kind, subject, html, body, error)
			values (@id, @to, @kind, @subject, @html, @text, @error)
			on conflict (id) do update set error = excluded.error`,
			pgx.StrictNamedArgs{"id": m.UUID, "to": m.Recipient, "kind": m.Kind, "subject": m.Subject, "html": m.HTML,
				"text": m.Text, "error": m.Error}); err != nil {
			return err
		}

		_, err := pg.Exec(ctx, tx, `
			delete from auth.mails where id in (select id from auth.mails order by created_at desc, id desc offset @most)`,
			pgx.StrictNamedArgs{"most": maxMails})
		return err
	})
}

// remove removes a mail. It succeeds if there is none.
func (b Mailbox) remove(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, b.Project.EndUserRows(), `delete from auth.mails where id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// newID returns an id for a mail that is not sent.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
