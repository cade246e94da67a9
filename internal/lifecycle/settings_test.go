package lifecycle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestLoginsSurviveTheirSettings gives the project's logins every setting that a login may give
// itself, at both ends of its range, in general and for the database. After a check by the watchdog
// the logins work and have none of the settings.
func TestLoginsSurviveTheirSettings(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)

	type parameter struct {
		Name, Low, High string
	}

	all, err := pg.All[parameter](t.Context(), projectdbtest.Connect(t, p, pgcluster.Trusted), `
		select name, case vartype when 'enum' then enumvals[1] when 'bool' then 'off' else coalesce(min_val, 'nonesuch') end as low,
			case vartype when 'enum' then enumvals[cardinality(enumvals)] when 'bool' then 'on' else coalesce(max_val, '') end as high
		from pg_settings where context = 'user' order by name`)
	if err != nil {
		t.Fatal(err)
	}

	all = append(all, parameter{
		"role", "anon", "pg_monitor",
	}, parameter{"local_preload_libraries", "nonesuch", "plpgsql"}, parameter{"socle.own", "a", "b"})
	if len(all) < 100 {
		t.Fatalf("got %d parameters, want 100 or more", len(all))
	}

	for _, l := range []pgcluster.Login{pgcluster.Owner, pgcluster.Request} {
		pool := map[string]*pgxpool.Pool{"owner": p.Owner(), "request": p.Request()}[l.String()]
		check := func(what string) {
			t.Helper()

			r.ResetPools(p.UUID) // the next request opens a session
			if err := p.Cluster().FindAltered(t.Context(), p.Trusted()); err != nil {
				t.Error(err)
			}

			_, first := pool.Exec(t.Context(), "select")
			var user, path string
			if err := pool.QueryRow(t.Context(), "select current_user, pg_catalog.current_setting('search_path')").
				Scan(&user, &path); err != nil || user != r.Login(p.UUID, l) {
				t.Errorf("%s, %s: after %v, got user %q, %v", l, what, first, user, err)
			}
			if got := pgtest.Value[int](t, p.Trusted(),
				`select count(*)::int from pg_db_role_setting s cross join unnest(setconfig) setting
				where s.setrole = $1::regrole and setting !~ '^(temp_file_limit|log_min_messages)='`, r.Login(p.UUID, l)); got != 0 {
				t.Errorf("%s, %s: got %d settings, want 0", l, what, got)
			}
			if got := pgtest.Value[int](t, p.Trusted(), `select count(*)::int from pg_db_role_setting s
				where s.setrole = $1::regrole and setconfig = array['temp_file_limit=8GB', 'log_min_messages=fatal']`,
				r.Login(p.UUID, l)); got != 1 {
				t.Errorf("%s, %s: the platform's settings are missing", l, what)
			}
		}

		for _, where := range []string{"", " in database " + pg.Quote(p.Cluster().Database(p.UUID))} {
			for _, end := range []string{"low", "high"} {
				conn := projectdbtest.Connect(t, p, l)
				set := 0
				for _, s := range all {
					v := map[string]string{"low": s.Low, "high": s.High}[end]
					if pgtest.State(t, conn,
						"alter role "+pg.Quote(r.Login(p.UUID, l))+where+" set "+
							pg.Quote(strings.Split(s.Name, ".")...)+" = "+pg.Literal(v)) == "" {
						set++
					}
				}

				if set < 80 {
					t.Errorf("%s: got %d settable parameters, want 80 or more", l, set)
				}

				check(fmt.Sprintf("%d parameters at the %s end%s", set, end, where))
			}
		}

		if l.String() != "owner" {
			continue
		}

		for _, one := range []string{"role = anon", "local_preload_libraries = nonesuch", "row_security = off",
			"idle_session_timeout = 1", "default_table_access_method = nonesuch",
			"default_transaction_isolation = serializable", "search_path = nonesuch", "client_encoding = 'LATIN1'"} {
			conn := projectdbtest.Connect(t, p, l)
			if got := pgtest.State(t, conn, "alter role current_user set "+one); got != "" && got != "22023" {
				t.Errorf("%s: state %s", one, got)
			}

			check(one)
		}

		pgtest.Exec(t, projectdbtest.Connect(t, p, l), "alter role current_user password null")
		check("without a password")
	}
}

// TestWatchdogResetsLogins checks that settings that a login gave itself are reset within seconds,
// without an error that would reveal them.
func TestWatchdogResetsLogins(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	p := projectdbtest.NewIn(t, r)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)

	go func() { stopped <- r.Watch(ctx) }()

	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Eventually(t, "the watchdog has looked", p.Cluster().WatchdogAlive)
	pgtest.Exec(t, conn, "alter role current_user set work_mem = '77MB'")

	pgtest.Eventually(t, "the login has its own settings no more", func() bool {
		return pgtest.Value[string](t, p.Owner(), "select current_setting('work_mem')") != "77MB" &&
			pgtest.Value[int](t, p.Trusted(),
				"select count(*)::int from pg_db_role_setting where setrole = $1::regrole and setdatabase = 0",
				p.Cluster().Login(p.UUID, pgcluster.Owner)) == 0
	})
}
