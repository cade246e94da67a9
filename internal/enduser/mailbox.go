package enduser

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/pg"
)

// maxMails is the number of mails in a project's mailbox.
const maxMails = 200

// Mail is a mail or a text message in the mailbox of a project, which was not sent.
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

// storeMail adds a mail to the mailbox and removes the oldest ones beyond the bound. A mail that is
// there gets the error.
func (d *Directory) storeMail(ctx context.Context, m Mail) error {
	return d.tx(ctx, "storing mail", func(ctx context.Context, tx pgx.Tx) error {
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

// attempt is an attempt of a job to send a message.
type attempt struct {
	ID        string // of the message, the same in all attempts
	Number    int    // from 1
	Kind      string
	Recipient string
	Foreign   bool // by the server of the install
}

// settle records the result of an attempt in the mailbox: a failure, without the text, which has
// codes and links; or the end of earlier failures. A failure to record it is logged only, since the
// job would send the message again.
func (d *Directory) settle(ctx context.Context, a attempt, failure error) {
	log := d.service.Log.With("project", d.UUID, "kind", a.Kind, "attempt", a.Number)
	id := uuid.NewSHA1(d.UUID, []byte(a.Kind+" "+a.ID))

	var err error
	switch {
	case failure != nil:
		log.Warn("send message to an end user", "error", failure)
		err = d.storeMail(ctx, Mail{UUID: id, Recipient: a.Recipient, Kind: a.Kind, Error: a.failureText(failure)})
	case a.Number > 1:
		_, err = pg.Exec(ctx, d.q(), `delete from auth.mails where id = @id`, pgx.StrictNamedArgs{"id": id})
	}
	if err != nil {
		log.Warn("record an attempt to send a message", "error", err)
	}
}

// failureText returns a failure as the administrators of the project see it. Only the log tells a
// refused network from a closed port, and has what the server of the install says.
func (a attempt) failureText(err error) string {
	_, network := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, mail.ErrNeedsUTF8):
		return mail.ErrNeedsUTF8.Error()
	case fault.Is(err, fault.TooMany):
		return fault.Of(err).Detail
	case a.Foreign:
		return "the mail server of the install did not accept it"
	case network, errors.Is(err, context.DeadlineExceeded):
		return "the server can't be reached or does not respond"
	}

	return fault.Clip(err.Error())
}

// ListMails returns a page of the project's mailbox and the total count.
func (d *Directory) ListMails(ctx context.Context, page pg.Page) ([]Mail, int64, error) {
	return pg.List[Mail](ctx, d.q(), pg.Listing{
		Columns: mailColumns, From: `auth.mails`,
		Sorts: map[string]string{"createdAt": "created_at", "recipient": "recipient"}, Tie: "id",
	}, page, pgx.StrictNamedArgs{})
}

// GetMail returns a mail of the mailbox. It fails with NotFound for an unknown one.
func (d *Directory) GetMail(ctx context.Context, id uuid.UUID) (Mail, error) {
	return pg.One[Mail](ctx, d.q(), `select`+mailColumns+`from auth.mails where id = @id`,
		pgx.StrictNamedArgs{"id": id})
}
