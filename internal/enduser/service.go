package enduser

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
)

// New returns the service and registers the workers of its mails and text messages.
func New(c Config) *Service {
	s := &Service{c}
	queue.Register(s.Queue, mailOptions, s.sendMail)
	queue.Register(s.Queue, smsOptions, s.sendSMS)

	return s
}

// Retention of rows, and the number of rows that one statement deletes.
const (
	logRetention = 90 * 24 * time.Hour
	flowTTL      = 24 * time.Hour
	sweepBatch   = 5000
)

// Sweep is [Directory.Sweep] of a project.
func (s *Service) Sweep(ctx context.Context, p *projectdb.Project) error {
	d, err := s.Open(ctx, p.UUID)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return d.Sweep(ctx)
}

// Sweep deletes expired rows: sessions that can't be refreshed, tokens, flows, challenges, counts
// of attempts, old log entries, unverified factors, and hashes of users that were not inserted.
// Each kind is deleted in batches.
func (d *Directory) Sweep(ctx context.Context) error {
	inactive := d.SessionInactivitySeconds
	if inactive == 0 {
		inactive = int(10 * 365 * 24 * time.Hour / time.Second)
	}

	age := func(t time.Duration) pgx.StrictNamedArgs { return pgx.StrictNamedArgs{"age": t, "most": sweepBatch} }
	return errors.Join(
		d.sweep(ctx, `delete from auth.sessions where id in (
			select id from auth.sessions where not_after < now() or coalesce(refreshed_at, created_at) < now() - @age::interval limit @most)`,
			age(time.Duration(inactive)*time.Second)),
		d.sweep(ctx, `delete from auth.one_time_tokens where id in (
			select id from auth.one_time_tokens where created_at < now() - @age::interval limit @most)`,
			age(time.Duration(d.CodeSeconds)*time.Second)),
		d.sweep(ctx, `delete from auth.sign_ups where id in (
			select id from auth.sign_ups where not created_user and created_at < now() - @age::interval limit @most)`,
			age(time.Duration(d.CodeSeconds)*time.Second)),
		sweepRows(ctx, d.db.Trusted(), `delete from auth.passwords where reference in (
			select reference from auth.passwords p where user_id is null and created_at < now() - @age::interval
				and not exists (select from auth.sign_ups s where s.encrypted_password = p.reference) limit @most)`, age(flowTTL)),
		d.sweep(ctx, `delete from auth.flow_state where id in (
			select id from auth.flow_state where created_at < now() - @age::interval limit @most)`, age(flowTTL)),
		d.sweep(ctx, `delete from auth.spent_flows where id in (
			select id from auth.spent_flows where created_at < now() - @age::interval limit @most)`, age(flowTTL)),
		d.sweep(ctx, `delete from auth.mfa_challenges where id in (
			select id from auth.mfa_challenges where created_at < now() - @age::interval limit @most)`, age(flowTTL)),
		d.sweep(ctx, `delete from auth.webauthn_challenges where id in (
			select id from auth.webauthn_challenges where created_at < now() - @age::interval limit @most)`, age(challengeTTL)),
		d.sweep(ctx, `delete from auth.mfa_factors where id in (
			select id from auth.mfa_factors where status = 'unverified' and created_at < now() - @age::interval limit @most)`, age(flowTTL)),
		d.sweep(ctx, `delete from auth.attempts where key in (
			select key from auth.attempts where resets_at < now() - @age::interval limit @most)`, age(0)),
		d.sweep(ctx, `delete from auth.audit_log_entries where id in (
			select id from auth.audit_log_entries where created_at < now() - @age::interval limit @most)`, age(logRetention)),
	)
}

func (d *Directory) sweep(ctx context.Context, sql string, args pgx.StrictNamedArgs) error {
	return sweepRows(ctx, d.Rows(), sql, args)
}

// sweepRows repeats a statement until it deletes less than a batch.
func sweepRows(ctx context.Context, q pg.Querier, sql string, args pgx.StrictNamedArgs) error {
	for {
		n, err := pg.Exec(ctx, q, sql, args)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}
