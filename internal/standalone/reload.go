package standalone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/tick"
)

// activate makes a configuration current for new requests. It loads the catalog anew only if
// schemas, search path or hoisted settings changed.
func (s *Server) activate(c Config) {
	for _, w := range c.Warnings {
		s.log.Error(w) // as an error, which the default log level shows
	}

	former := s.current.Load()
	next := &serving{Config: c}
	if former != nil && slices.Equal(former.Config.api.Schemas, c.api.Schemas) &&
		slices.Equal(former.Config.api.SearchPath, c.api.SearchPath) && slices.Equal(former.hoisted, c.hoisted) {
		next.cache = former.cache
	} else {
		next.cache = rest.NewCache(rest.Source{Pool: func() *pgxpool.Pool { return s.pool },
			Options: catalog.Options{Schemas: c.api.Schemas, SearchPath: c.api.SearchPath, Hoisted: c.hoisted}}, s.log)
		next.cache.ListenOn(c.channel, s.ReloadConfig)
	}

	c.api.Catalog, c.api.Auth.Role = next.cache, s.role
	c.api.Limits.Timeout, c.api.Session.Budget = statementTimeout, s.responses

	next.api = rest.New(c.api)

	if c.Level != nil {
		c.Level.Set(c.LogLevel)
	}

	s.current.Store(next)

	if former != nil && former.cache != next.cache {
		s.retired.Go(former.cache.Retire) // requests in flight still use the former catalog
	}
}

// reconfigure reloads the configuration: file, environment and database. It logs mistakes and keeps
// the former configuration. Addresses, the pool and the channel never change.
func (s *Server) reconfigure(ctx context.Context) {
	former := s.current.Load().Config
	c, err := s.load(ctx, former)
	if err != nil && ctx.Err() != nil {
		return // the server is stopping
	}
	if err != nil {
		s.log.Error("reload of the configuration failed, keeping the former one", "error", err)
		return
	}

	c.channel, c.Level = former.channel, former.Level
	s.activate(c)
	s.log.Info("configuration reloaded")
}

// load reads the configuration again, from all sources.
func (s *Server) load(ctx context.Context, former Config) (Config, error) {
	c, err := former.reload()
	if err != nil || !c.inDatabase {
		return c, err
	}

	parameters, err := s.parameters(ctx, c)
	if err != nil {
		return c, err
	}

	return c.withParameters(parameters)
}

// awaitParameters is parameters with retries until the database responds. It fails if the database
// rejects the login.
func (s *Server) awaitParameters(ctx context.Context, c Config) (map[string]string, error) {
	for delay := time.Second; ; delay = min(2*delay, maxRetryDelay) {
		parameters, err := s.parameters(ctx, c)
		if err == nil {
			return parameters, nil
		}

		if rejected, ok := errors.AsType[*pgconn.PgError](err); ok && !strings.HasPrefix(rejected.Code, "08") &&
			!strings.HasPrefix(rejected.Code, "53") && !strings.HasPrefix(rejected.Code, "57") {
			return nil, fmt.Errorf("connect to the database: %w", err)
		}

		s.log.Error("cannot reach the database", "error", err, "retry", delay)

		if tick.Pause(ctx, delay) != nil {
			return nil, fmt.Errorf("connect to the database: %w", err)
		}
	}
}

// parameters returns the settings in the database: those that db-pre-config's function sets and,
// with precedence, those of ALTER ROLE … SET pgrst.… for the login.
func (s *Server) parameters(ctx context.Context, c Config) (map[string]string, error) {
	var all []string
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		all = nil
		if c.preConfig != "" {
			f := c.function(c.preConfig)
			if _, err := tx.Exec(ctx, "select "+pg.Quote(f.Schema, f.Name)+"()"); err != nil {
				return fmt.Errorf("db-pre-config: %w", err)
			}

			var names []string
			for _, setting := range settings {
				if setting.inDatabase {
					names = append(names, "pgrst."+strings.ReplaceAll(setting.name, "-", "_"))
				}
			}

			set, err := pg.Values[string](ctx, tx, `
				select n || '=' || pg_catalog.current_setting(n, true) from pg_catalog.unnest(@names::text[]) n
				where pg_catalog.current_setting(n, true) <> ''`, pgx.StrictNamedArgs{"names": names})
			if err != nil {
				return err
			}

			all = set
		}

		parameters, err := pg.Values[string](ctx, tx, `
			select p from pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) p
			where s.setrole = (select oid from pg_catalog.pg_roles where rolname = session_user) and p like 'pgrst.%'
			  and s.setdatabase in (0, (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()))
			order by s.setdatabase`)

		all = append(all, parameters...)
		return err
	})

	parameters := map[string]string{}
	for _, one := range all {
		name, value, _ := strings.Cut(one, "=")
		parameters[name] = value
	}

	return parameters, err
}

// Reload reloads the catalog and the role settings. It does not block.
func (s *Server) Reload() {
	s.current.Load().cache.Reload()
	signal(s.reload)
}

// ReloadConfig reloads the configuration. It does not block.
func (s *Server) ReloadConfig() { signal(s.changed) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a reload is pending
	}
}

// refresh refreshes the cached role settings and the catalog until ctx ends.
func (s *Server) refresh(ctx context.Context) {
	tick := time.NewTicker(rolesInterval)
	defer tick.Stop()

	for ctx.Err() == nil {
		s.readRoles(ctx)
		_, _ = s.current.Load().cache.Get(ctx) // keeps it listening; it logs its own errors

		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.reload:
		case <-s.changed:
			s.reconfigure(ctx)
		}
	}
}
