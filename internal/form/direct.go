package form

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
)

// createAtOnce stores a valid response without files in one round trip. d may be outdated. isDone
// is false if the response may be invalid or a condition does not hold: the caller finds out which.
func (s submission) createAtOnce(ctx context.Context, d fieldSet) (r Receipt, isDone bool, err error) {
	answers := maps.Clone(s.answers)
	if s.files.Create != nil || d.takeHoneypot(answers) {
		return r, false, nil
	}

	valid, err := d.validate(ctx, answers, nil)
	if err != nil {
		return r, false, nil
	}

	f, err := s.insertAtOnce(ctx, valid, d)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // Conflict: the UUID is taken
		return r, false, nil
	}

	return s.receipt(f, false), true, err
}

const (
	countAndInsert = `
		counted as (
			update forms.forms set total_responses = total_responses + 1
			where uuid = @form and version = @version and honeypot is not distinct from @honeypot
			  and (notify_emails <> '{}') = @notifies
			  and exists (select from forms.definitions d
				where d.form_uuid = @form and d.version = @version and d.created_at = @frozen_at)` +
		accepting + countedColumns + `
		), inserted as (
			insert into forms.responses (uuid, form_uuid, version, state, answers, created_at, updated_at, submitted_at)
			select @id, @form, @version, 'complete', @answers, c.now, c.now, c.now from counted c
		)`

	// Even unused, it would cost a tenth of the statement.
	noteNotification = `, noted as (
			insert into forms.notifications (response_uuid, form_uuid) select @id, @form from counted
		)`

	selectCounted = `select version, success_message, notify, now from counted`
)

// insertAtOnce counts and inserts a response in one round trip. It fails with NotFound unless the
// form accepts responses and d is current. Responses are counted in the form's row, so its lock
// ends before the flush.
func (s submission) insertAtOnce(ctx context.Context, answers Answers, d fieldSet) (countedForm, error) {
	args := pgx.StrictNamedArgs{"id": s.id, "form": s.form, "version": d.version, "frozen_at": d.frozenAt,
		"honeypot": d.honeypot, "notifies": d.notifies, "answers": answers.encode()}
	if d.notifies {
		return projectdb.ChangeOne[countedForm](ctx, s.project, audit.Change{With: countAndInsert + noteNotification,
			SQL: selectCounted, Args: args, EarlyRelease: true})
	}

	return projectdb.ChangeOne[countedForm](ctx, s.project, audit.Change{With: countAndInsert, SQL: selectCounted,
		Args: args, EarlyRelease: true})
}
