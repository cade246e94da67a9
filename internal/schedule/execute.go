package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/statement"
)

const (
	acquireTimeout = 30 * time.Second // for a connection
	recordTimeout  = 5 * time.Second  // for the end of a run

	maxReply   = 64 << 10 // bytes of an endpoint's response
	maxMessage = 4000     // bytes of a run's message
)

// errStopped is the failure of a run whose server stops.
var errStopped = errors.New("the server stopped during the run")

// runCommand runs a job's SQL on a session of the owner's login, which ends with the run.
func (s *Service) runCommand(ctx context.Context, p *projectdb.Project, w work) {
	full, err := statement.CheckQuota(p)
	if err != nil {
		s.finish(ctx, p, w, "", err)
		return
	}

	acquireCtx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()

	pooled, err := pg.Acquire(acquireCtx, p.Owner())
	if err != nil {
		s.finish(ctx, p, w, "", err)
		return
	}
	defer pooled.Release()

	conn := pooled.Conn().PgConn()
	message, err := "", s.start(ctx, p, w, conn.PID())
	if err == nil {
		message, err = execute(ctx, conn, w, full)
	}

	// The session ends after the record: a run without its session counts as lost.
	s.finish(ctx, p, w, message, err)
	statement.EndSession(ctx, conn, err != nil)
}

// execute runs a job's SQL within its timeout and returns the result in words. A project beyond its
// quota runs commands that free space.
func execute(ctx context.Context, conn *pgconn.PgConn, w work, full bool) (string, error) {
	timeout := time.Duration(w.TimeoutSeconds) * time.Second
	runCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	tag, err := statement.RunCommand(runCtx, conn, "command", w.Command, full)
	switch {
	case err == nil:
		return result(tag), nil
	case ctx.Err() != nil:
		return "", errStopped
	case runCtx.Err() != nil:
		return "", fmt.Errorf("the run took longer than %s and was canceled", timeout)
	}

	return "", err
}

// result returns a command tag as pg_cron does: rows of a query, otherwise the tag.
func result(tag string) string {
	rows, isQuery := strings.CutPrefix(tag, "SELECT ")
	switch {
	case !isQuery:
		return tag
	case rows == "1":
		return "1 row"
	}

	return rows + " rows"
}

// start records the session of a run.
func (s *Service) start(ctx context.Context, p *projectdb.Project, w work, pid uint32) error {
	_, err := pg.Exec(ctx, p.Trusted(), `
		update cron.job_run_details
		set status = 'running', job_pid = @pid, session_start = (select backend_start from pg_stat_activity where pid = @pid)
		where runid = @run`, pgx.StrictNamedArgs{"run": w.Run, "pid": int64(pid)})
	return err
}

// callEndpoint posts the run to a job's endpoint and returns the response in words.
func (s *Service) callEndpoint(ctx context.Context, p *projectdb.Project, w work) (string, error) {
	body, err := json.Marshal(map[string]any{
		"schedule": map[string]any{"id": w.Job, "name": w.Name},
		"run":      map[string]any{"id": w.Run, "scheduledAt": w.ScheduledAt},
	})
	if err != nil {
		return "", err
	}

	runCtx, cancel := context.WithTimeout(ctx, time.Duration(w.TimeoutSeconds)*time.Second)
	defer cancel()

	request, err := hook.Webhook{URL: *w.URL, Secrets: s.projects.ScheduleSecret(p.UUID, w.Job),
		ID: uuid.NewSHA1(p.UUID, fmt.Append(nil, "run ", w.Run)), Body: body}.Request(runCtx)
	if err != nil {
		return "", err
	}

	response, err := s.functions.Endpoints(p, s.endpoints).Do(runCtx, p.Key(ctx), request)
	switch {
	case ctx.Err() != nil:
		return "", errStopped
	case errors.Is(err, outbound.ErrTooLarge):
		return "", fmt.Errorf("the response has more than %d bytes", maxReply)
	case err != nil: // says nothing about the server's networks
		s.log.Debug("call endpoint of a schedule", "project", p.UUID, "job", w.Job, "error", err)
		return "", errors.New("the endpoint could not be reached in time")
	}

	message := fmt.Sprintf("%d %s", response.Status, http.StatusText(response.Status))
	if len(response.Body) > 0 {
		message += "\n" + string(response.Body)
	}
	if response.Status < 200 || response.Status > 299 {
		return "", errors.New(message)
	}

	return message, nil
}

// finish records the end of a run, also after ctx has ended, and removes the oldest runs of the job
// beyond the number that is kept.
func (s *Service) finish(ctx context.Context, p *projectdb.Project, w work, message string, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()

	status, count := "succeeded", &s.succeeded
	if failure != nil {
		count = &s.failed
		status, message = "failed", s.describe(p, w, failure)
	}

	_, err := pg.Exec(ctx, p.Trusted(), `
		with finished as (
			update cron.job_run_details set status = @status, return_message = @message, end_time = clock_timestamp()
			where runid = @run and status in ('starting', 'running')
		)
		delete from cron.job_run_details
		where jobid = @job and status not in ('queued', 'starting', 'running') and runid <= (
			select r.runid from cron.job_run_details r where r.jobid = @job order by r.runid desc offset @kept limit 1)`,
		pgx.StrictNamedArgs{"run": w.Run, "job": w.Job, "status": status, "message": storable(message),
			"kept": maxRunsKept})
	if err != nil {
		s.log.Warn("record run of a schedule", "project", p.UUID, "job", w.Job, "error", err)
	}
	count.Add(1)
}

// describe returns a run's failure for the project's developers: PostgreSQL's report in full.
func (s *Service) describe(p *projectdb.Project, w work, failure error) string {
	if e, ok := errors.AsType[*pgconn.PgError](failure); ok {
		var text strings.Builder
		fmt.Fprintf(&text, "%s: %s", cmp.Or(e.Severity, "ERROR"), e.Message)
		for _, part := range []struct{ name, text string }{
			{"DETAIL", e.Detail}, {"HINT", e.Hint}, {"CONTEXT", e.Where},
		} {
			if part.text != "" {
				fmt.Fprintf(&text, "\n%s: %s", part.name, part.text)
			}
		}

		return text.String()
	}

	if e, ok := errors.AsType[*fault.Error](failure); ok {
		if len(e.Fields) > 0 {
			return e.Fields[0].Name + " " + e.Fields[0].Message
		}

		return cmp.Or(e.Detail, "the project's database could not be reached")
	}

	if pg.IsDisconnect(failure) || errors.Is(failure, context.DeadlineExceeded) {
		s.log.Warn("run schedule", "project", p.UUID, "job", w.Job, "error", failure)
		return "the connection to the project's database was lost"
	}

	return failure.Error()
}

// storable returns the beginning of a text as PostgreSQL stores it.
func storable(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}

	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}
