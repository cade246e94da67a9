package form

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// StartResponse stores a partial response to a form and returns the token to continue it. It does
// not check the fields' rules yet. It fails with NotFound if the form does not exist, with Conflict
// if the form does not accept responses, and with Unprocessable on answers without a field or with
// the wrong type.
func StartResponse(
	ctx context.Context, p *projectdb.Project, form, id uuid.UUID, answers Answers,
) (Receipt, string, error) {
	s := submission{project: p, form: form, id: id, answers: answers}
	token, hash := newToken()

	var receipt Receipt
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		if err := s.lockForm(ctx, tx); err != nil {
			return err
		}

		answers, isBlocked, err := s.checkPartial(ctx, tx, answers)
		if err != nil {
			return err
		}

		audit.CreatedUUID(ctx, id)
		receipt = Receipt{UUID: id, FormUUID: form, State: "partial"}
		if isBlocked {
			expires := time.Now().Add(PartialTTL)
			receipt.ExpiresAt = &expires
			_, err := pg.Exec(ctx, tx,
				`update forms.forms set blocked_responses = blocked_responses + 1 where uuid = @form`,
				pgx.StrictNamedArgs{"form": form})
			return err
		}

		version, err := s.storeVersion(ctx, tx)
		if err != nil {
			return err
		}

		expires, err := pg.Value[time.Time](ctx, tx, `
			insert into forms.responses (uuid, form_uuid, version, state, answers, token_hash, expires_at)
			values (@id, @form, @version, 'partial', @answers, @hash, now() + @ttl::interval)
			returning expires_at`,
			pgx.StrictNamedArgs{
				"id": id, "form": form, "version": version, "answers": answers.encode(),
				"hash": hash, "ttl": PartialTTL,
			})

		receipt.ExpiresAt = &expires
		return err
	})

	return receipt, token, err
}

// lockForm locks the form's row until the transaction ends, so that form and fields do not change.
func (s submission) lockForm(ctx context.Context, tx pgx.Tx) error {
	_, err := pg.Value[uuid.UUID](ctx, tx, `select uuid from forms.forms where uuid = @form for no key update`,
		pgx.StrictNamedArgs{"form": s.form})
	return err
}

// checkPartial fails unless the form accepts responses and the answers belong to the form's fields.
// It returns the answers by UUID, and reports whether the honeypot was filled in.
func (s submission) checkPartial(
	ctx context.Context, tx pgx.Tx, in Answers,
) (answers Answers, isBlocked bool, err error) {
	f, err := getForm(ctx, tx, s.project, s.form)
	if err != nil {
		return nil, false, err
	}

	if reason := f.closedReason(time.Now()); reason != nil {
		return nil, false, reason
	}

	d, err := s.loadFields(ctx, tx)
	if err != nil {
		return nil, false, err
	}

	if d.takeHoneypot(in) {
		return nil, true, nil
	}

	answers, err = d.validatePartial(in)
	return answers, false, err
}

// ContinueResponse adds answers to a partial response, identified by token; null removes an answer.
// With complete it validates the whole response, counts it and completes it. It fails with NotFound
// if there is no such partial response, and as [CreateResponse] does.
func ContinueResponse(
	ctx context.Context, p *projectdb.Project, form, id uuid.UUID, token string, answers Answers, complete bool,
) (Receipt, error) {
	s := submission{project: p, form: form, id: id}
	var receipt Receipt
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		if err := s.lockForm(ctx, tx); err != nil { // lock order: form, response
			return err
		}

		oldAnswers, err := pg.Value[json.RawMessage](ctx, tx, `
			select answers from forms.responses
			where uuid = @id and form_uuid = @form and state = 'partial' and token_hash = @hash and expires_at > now()
			for update`, pgx.StrictNamedArgs{"id": id, "form": form, "hash": hashToken(token)})
		if err != nil {
			return err
		}

		answers, isBlocked, err := s.checkPartial(ctx, tx, answers)
		if err != nil {
			return err
		}

		receipt = Receipt{UUID: id, FormUUID: form, State: "partial"}

		if isBlocked { // probably a bot: acknowledge and let the response expire
			answers, complete = nil, false
		}

		all, err := s.mergeAnswers(ctx, tx, oldAnswers, answers)
		if err != nil {
			return err
		}

		if complete {
			return s.complete(ctx, tx, all, &receipt)
		}

		version, err := s.storeVersion(ctx, tx)
		if err != nil {
			return err
		}

		expires, err := pg.Value[time.Time](ctx, tx, `
			update forms.responses
			set version = @version, answers = @answers, updated_at = now(), expires_at = now() + @ttl::interval
			where uuid = @id
			returning expires_at`, pgx.StrictNamedArgs{
			"id": id, "version": version, "answers": all.encode(), "ttl": PartialTTL,
		})

		receipt.ExpiresAt = &expires
		return err
	})

	return receipt, err
}

// mergeAnswers applies new answers to the stored ones and drops answers to deleted fields.
func (s submission) mergeAnswers(
	ctx context.Context, tx pgx.Tx, old json.RawMessage, answers Answers,
) (Answers, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(old, &values); err != nil {
		return nil, err
	}

	d, err := s.loadFields(ctx, tx)
	if err != nil {
		return nil, err
	}

	result := Answers{}
	for _, f := range d.fields {
		name := f.UUID.String()
		if v, ok := values[name]; ok {
			result[name] = []byte(v)
		}

		if v, ok := answers[name]; ok {
			result[name] = v
		}

		if isEmpty(result[name]) {
			delete(result, name)
		}
	}

	return result, nil
}

func (s submission) complete(ctx context.Context, tx pgx.Tx, answers Answers, receipt *Receipt) error {
	d, err := s.loadFields(ctx, tx)
	if err != nil {
		return err
	}

	valid, err := d.validate(ctx, answers, nil)
	if err != nil {
		return err
	}

	f, err := s.countResponse(ctx, tx, false)
	if err != nil {
		return err
	}

	version, err := s.storeVersion(ctx, tx)
	if err != nil {
		return err
	}

	receipt.State, receipt.SubmittedAt, receipt.SuccessMessage = "complete", &f.Now, f.SuccessMessage
	receipt.Notify = f.Notify

	_, err = pg.Exec(ctx, tx, `
		update forms.responses
		set version = @version, state = 'complete', answers = @answers, token_hash = null, expires_at = null,
		    updated_at = @now, submitted_at = @now
		where uuid = @id`,
		pgx.StrictNamedArgs{"id": s.id, "version": version, "answers": valid.encode(), "now": f.Now})
	if err != nil {
		return err
	}

	return s.noteNotification(ctx, tx, f)
}

// Sweep deletes a project's expired partial responses and returns their number.
func Sweep(ctx context.Context, p *projectdb.Project) (int64, error) {
	var n int64
	err := p.InTx(ctx, func(tx pgx.Tx) (err error) {
		n, err = pg.Exec(ctx, tx, `delete from forms.responses where state = 'partial' and expires_at < now()`)
		return err
	})
	return n, err
}
