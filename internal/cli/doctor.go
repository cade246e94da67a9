//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/server"
)

// minReleases are the minimum releases without known vulnerabilities that affect Socle, by major
// version.
var minReleases = map[int]int{15: 150019, 16: 160015, 17: 170011, 18: 180006}

// finding is the result of one check.
type finding struct {
	subject string
	detail  string
	err     error
	warn    bool
}

func doctor(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check programs, storage, mail, edge functions, database, clock and access",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := e.config(cmd)
			if err != nil {
				return err
			}
			if err := server.CheckDataDir(c); err != nil {
				return err
			}

			failed := 0
			for _, f := range runChecks(cmd.Context(), c) {
				mark := "ok  "
				if f.warn {
					mark = "warn"
				}

				if f.err != nil {
					mark, f.detail = "FAIL", f.err.Error()
					failed++
				}

				fmt.Fprintf(cmd.OutOrStdout(), "%s  %-10s %s\n", mark, f.subject, f.detail)
			}

			if failed > 0 {
				return fmt.Errorf("%d checks failed", failed)
			}

			return nil
		},
	}

	e.flags(cmd)
	return cmd
}

func runChecks(ctx context.Context, c config.Config) []finding {
	return append([]finding{checkBinaries(c), checkStorage(ctx, c), checkMail(c), checkFunctions(ctx, c)},
		checkDatabase(ctx, c)...)
}

// functionCheckTimeout bounds the start of a function.
const functionCheckTimeout = 10 * time.Second

// checkFunctions starts an edge function. Without Deno everything else works.
func checkFunctions(ctx context.Context, c config.Config) finding {
	ctx, cancel := context.WithTimeout(ctx, functionCheckTimeout)
	defer cancel()

	if err := server.CheckFunctions(ctx, c); err != nil {
		return finding{subject: "functions", warn: true, detail: "edge functions are off: " + err.Error()}
	}

	return finding{subject: "functions", detail: "edge functions run, each in a sandbox of its own"}
}

func checkMail(c config.Config) finding {
	if c.SMTPURL == "" {
		return finding{
			subject: "mail",
			warn:    true,
			detail:  "written to the log, including links; set SOCLE_SMTP_URL to send it",
		}
	}

	return finding{subject: "mail", detail: "sent by SMTP, from " + c.MailFrom}
}

func checkBinaries(c config.Config) finding {
	b, err := pgserver.Find(c.PostgresBin)
	if err != nil {
		return finding{subject: "programs", err: err}
	}

	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := os.Stat(b.Path(name)); err != nil {
			return finding{subject: "programs", err: fmt.Errorf("%s is missing from %s", name, b.Dir)}
		}
	}

	f := finding{subject: "programs", detail: fmt.Sprintf("PostgreSQL %s in %s", release(b.Version), b.Dir)}
	if minimum, ok := minReleases[b.Version/10000]; ok && b.Version < minimum {
		f.warn = true
		f.detail += ": upgrade to " + release(minimum) + " or newer, which fixes known vulnerabilities"
	}

	return f
}

func release(version int) string { return fmt.Sprintf("%d.%d", version/10000, version%10000) }

func checkStorage(ctx context.Context, c config.Config) finding {
	f := finding{subject: "storage", detail: storage(c)}

	blobs, err := blob.OpenConfigured(c)
	if err != nil {
		f.err = err
		return f
	}

	f.err = blobs.Check(ctx)
	if mistake, ok := errors.AsType[*blob.ConfigError](f.err); ok {
		f.err = mistake
	}

	f.err = errors.Join(f.err, blobs.Close())
	return f
}

// storage returns the location of files and backups.
func storage(c config.Config) string {
	if s3, ok := c.S3(); ok {
		return "bucket " + s3.Bucket + " at " + cmp.Or(s3.Endpoint, "Amazon S3 in "+s3.Region)
	}
	return c.StorageDir()
}

func checkDatabase(ctx context.Context, c config.Config) []finding {
	d, _, err := server.OpenDatabase(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return []finding{{subject: "database", err: err}}
	}
	defer d.Close(context.WithoutCancel(ctx))

	before := time.Now()
	state, err := pg.One[struct {
		Version  string
		Now      time.Time
		Projects int
	}](ctx, d.Pool, `
		select current_setting('server_version') as version, clock_timestamp() as now,
		       (select count(*) from platform.projects)::int as projects`)
	if err != nil {
		return []finding{{subject: "database", err: err}}
	}

	database := finding{
		subject: "database",
		detail:  fmt.Sprintf("PostgreSQL %s, up to date, %d projects", state.Version, state.Projects),
	}

	clock := finding{subject: "clock", detail: "in sync with the database"}
	if gap := state.Now.Sub(before).Abs(); gap > 5*time.Second {
		clock.err = fmt.Errorf("differs by %s from the database's clock: tokens expire too early or too late",
			gap.Round(time.Second))
	}

	return append([]finding{database, clock, checkStatements(ctx, d)}, checkAccess(ctx, d)...)
}

// checkStatements checks whether PostgreSQL records statements, which the statistics of a project
// need.
func checkStatements(ctx context.Context, d *server.Database) finding {
	loaded, installed, err := d.Store.StatementStatsStatus(ctx)
	f := finding{
		subject: "statements",
		detail:  "recorded by pg_stat_statements",
		err:     err,
		warn:    !loaded,
	}
	switch {
	case err == nil && !loaded && !installed:
		f.detail = "not recorded: install PostgreSQL's contrib extensions (on Debian and Ubuntu part of postgresql, " +
			"elsewhere postgresql-contrib) and restart PostgreSQL"
	case err == nil && !loaded:
		f.detail = "not recorded: set shared_preload_libraries = 'pg_stat_statements' in postgresql.conf, " +
			"then restart PostgreSQL and Socle"
	}

	return f
}

// checkAccess finds databases that accept connections from the logins of all projects. Socle
// closes its own databases and, where permitted, those of initdb. A shared cluster may have more.
func checkAccess(ctx context.Context, d *server.Database) []finding {
	open, err := pg.Values[string](ctx, d.Pool, `
		select datname::text from pg_database
		where datallowconn and has_database_privilege('public', oid, 'connect')
		order by datname`)
	if err != nil {
		return []finding{{subject: "access", err: err}}
	}

	if len(open) == 0 {
		return append([]finding{{subject: "access", detail: "projects can connect to their own databases only"}},
			checkAdmissions(ctx, d)...)
	}

	f := finding{
		subject: "access",
		warn:    true,
		detail:  "the logins of projects can connect to: " + strings.Join(open, ", "),
	}

	f.detail += "; to close one, grant CONNECT by name to the logins that use it, then run: " +
		"revoke connect on database " + pg.Quote(open[0]) + " from public"

	return append([]finding{f}, checkAdmissions(ctx, d)...)
}

// checkAdmissions names the logins of other programs that Socle has granted by name what it revoked
// from PUBLIC, and those that still lack it.
func checkAdmissions(ctx context.Context, d *server.Database) []finding {
	admissions, err := pgcluster.Admissions(ctx, d.Pool,
		append(slices.Clone(pgcluster.InitdbDatabases), d.Pool.Config().ConnConfig.Database)...)
	if err != nil {
		return []finding{{subject: "logins", err: err}}
	}

	var findings []finding
	for _, a := range admissions {
		f := finding{subject: "logins", warn: len(a.Missing) > 0}
		var parts []string
		if len(a.Logins) > 0 {
			parts = append(parts, "of other programs, granted access by name: "+strings.Join(a.Logins, ", "))
		}
		if len(a.Missing) > 0 {
			parts = append(parts, "without access until the next start of Socle: "+strings.Join(a.Missing, ", "))
		}

		f.detail = "database " + a.Database + ": " + strings.Join(parts, "; ")
		findings = append(findings, f)
	}

	return findings
}
