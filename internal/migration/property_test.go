package migration

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// subject is a project whose schema is compared.
type subject struct {
	t testing.TB
	s *Service
	p *projectdb.Project
}

func newSubject(t testing.TB) *subject {
	t.Helper()

	binaries, err := pgserver.Find(pgtest.BinDir())
	if err != nil {
		t.Fatal(err)
	}

	l := lifecycle.New(lifecycle.Config{Registry: projectdbtest.Registry(t)})
	return &subject{t, New(l, binaries, slog.New(slog.DiscardHandler)), projectdbtest.New(t)}
}

// run runs a statement in the project, as a developer.
func (s *subject) run(sql string) error {
	_, err := s.p.Owner().Exec(s.t.Context(), "set search_path = public, extensions; "+sql)
	return err
}

// runAll runs the statements of a text on one session.
func (s *subject) runAll(sql string) {
	s.t.Helper()

	conn, err := s.p.Owner().Acquire(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Release()

	for _, statement := range parsed(s.t, sql)[0].steps {
		if _, err := conn.Exec(s.t.Context(), statement.Text); err != nil {
			s.t.Errorf("%s: %v", statement.Text, err)
		}
	}
}

// within runs a function with an empty scratch copy.
func (s *subject) within(f func(context.Context, scratch) error) error {
	ctx := s.t.Context()
	c := s.s.lifecycle.Scratch(s.p.UUID)
	if err := c.CreateEmpty(ctx, nil); err != nil {
		return err
	}

	conn, err := c.ConnectOwner(ctx)
	if err == nil {
		err = f(ctx, scratch{c, conn, nil})
		err = errors.Join(err, conn.Close(ctx))
	}

	return errors.Join(err, c.Drop(ctx))
}

// parsed returns files of the texts.
func parsed(t testing.TB, texts ...string) []script {
	t.Helper()

	var files []Source
	for i, sql := range texts {
		files = append(files, Source{Version: strconv.Itoa(20261123101500 + i), Name: "step", SQL: sql})
	}

	scripts, err := parse(files)
	if err != nil {
		t.Fatal(err)
	}

	return scripts
}

// write returns what is written for the project and files.
func (s *subject) write(texts ...string) SchemaDiff {
	s.t.Helper()

	d, err := s.s.diff(s.t.Context(), s.p.UUID, parsed(s.t, texts...), s.within)
	if err != nil {
		s.t.Fatal(err)
	}

	return d
}

// check is write. It fails the test unless the project is equal to a copy with all files, or the
// answer has what differs.
func (s *subject) check(texts ...string) SchemaDiff {
	s.t.Helper()

	d := s.write(texts...)

	var copied, target []pgdump.Entry
	err := s.within(func(ctx context.Context, c scratch) (err error) {
		if err := c.applyAll(ctx, parsed(s.t, slices.Concat(texts, d.Files)...)); err != nil {
			return err
		}
		if copied, err = s.s.dumpScratch(ctx, c); err != nil {
			return err
		}

		address, password := s.p.DumpURL()
		target, err = s.s.dump(ctx, s.p.UUID, address, password)

		return err
	})
	if err != nil {
		s.t.Fatalf("%v, of the files\n%s", err, strings.Join(d.Files, "\n=====\n"))
	}

	differs := cmp.Diff(described(target), described(copied))
	if (differs == "") != (len(d.Differences) == 0) {
		s.t.Errorf("got differences %+v, want (-project +files):\n%s\nfiles:\n%s",
			d.Differences, differs, strings.Join(d.Files, "\n=====\n"))
	}

	return d
}

// described returns the definitions of entries by key. The order of columns and of privileges does
// not matter.
func described(entries []pgdump.Entry) map[string][]string {
	all := map[string][]string{}
	for _, e := range entries {
		lines := strings.Split(e.Definition, "\n")
		if e.Desc == "TABLE" || e.Desc == "ACL" {
			for i := range lines {
				lines[i] = strings.TrimSuffix(lines[i], ",")
			}
			slices.Sort(lines)
		}

		k := e.Desc + "|" + e.Namespace + "|" + e.Tag + "|" + e.Drop
		all[k] = append(all[k], lines...)
	}

	return all
}

// TestDiffIsApplied: pull and diff write what turns the files into the project, for schemas and
// changes of them that are generated. SOCLE_TEST_SEEDS is the number of schemas, 1 by default, and
// SOCLE_TEST_SEED the first one.
func TestDiffIsApplied(t *testing.T) {
	t.Parallel()

	seeds, _ := strconv.Atoi(os.Getenv("SOCLE_TEST_SEEDS"))
	if seeds == 0 {
		seeds = 1
	}
	first, _ := strconv.Atoi(os.Getenv("SOCLE_TEST_SEED"))

	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()

			s := newSubject(t)
			g := generator{rand.New(rand.NewPCG(uint64(seed), 0))}
			made := s.change(150, g.create)
			if len(made) < 20 {
				t.Errorf("only %d statements succeeded", len(made))
			}

			files := s.write().Files
			made = s.change(100, g.alter)
			d := s.check(files...)
			t.Logf("%d changes, differences: %+v", len(made), d.Differences)

			if t.Failed() {
				t.Logf("after\n%s", strings.Join(made, ";\n"))
			}
		})
	}
}

// change runs n generated statements, and returns those that succeeded.
func (s *subject) change(n int, statement func() string) (made []string) {
	for range n {
		sql := statement()
		if err := s.run(sql); err == nil {
			made = append(made, sql)
		} else if strings.Contains(err.Error(), "SQLSTATE 42601") {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}

	return made
}
