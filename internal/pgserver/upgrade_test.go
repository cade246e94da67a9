package pgserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestUpgrade upgrades from the oldest installed version to the newest, which can be the same: the
// steps are. The data, the password and the previous data directory survive.
func TestUpgrade(t *testing.T) {
	t.Parallel()

	installed := Installed()
	if len(installed) == 0 {
		t.Fatal("no PostgreSQL is installed in a standard location")
	}

	newest, oldest := installed[0], installed[len(installed)-1]
	t.Logf("from %d to %d", oldest.Version, newest.Version)

	c := config(t)
	c.Binaries = oldest
	s := start(t, c)
	execute(t, s, `create role tenant login password 'of a tenant'; alter role tenant set temp_file_limit = '8GB';
		create table kept as select 'here' as v`)
	execute(t, s, "create database other")
	execute(t, s, "alter database other allow_connections false")
	kill(t, s.pid()) // pg_upgrade refuses data after a crash
	<-s.current().done

	c.Binaries = newest
	done, err := Upgrade(t.Context(), c, oldest)
	if err != nil {
		t.Fatal(err)
	}

	want := filepath.Join(c.Dir, dataName+"."+strconv.Itoa(oldest.Major()))
	if done.From != oldest || done.To != newest || done.Databases != 3 || done.Kept != want {
		t.Errorf("got %+v", done)
	}

	if _, err := os.Stat(filepath.Join(want, "PG_VERSION")); err != nil {
		t.Errorf("the previous data directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, newDataName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", newDataName, err)
	}

	s = start(t, c)
	if got, want := value(t, s, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := value(t, s, `select string_agg(datname, ' ') from pg_database
		where not datallowconn and datname <> 'template0'`); got != "other" {
		t.Errorf("databases without connections: got %q, want other", got)
	}
	if got, want := value(t, s, "select setconfig::text from pg_db_role_setting"),
		"{temp_file_limit=8GB}"; got != want {
		t.Errorf("settings of a role: got %q, want %q", got, want)
	}
	if got, want := value(t, s, "select (current_setting('server_version_num')::int / 10000)::text"),
		strconv.Itoa(newest.Major()); got != want {
		t.Errorf("got PostgreSQL %s, want %s", got, want)
	}
	if got := value(t, s, "select reltuples::text from pg_class where relname = 'kept'"); got != "1" {
		t.Errorf("statistics: got %s rows, want 1", got)
	}
	stop(t, s)

	if _, err := Upgrade(t.Context(), c, Binaries{}); !errors.Is(err, ErrUpToDate) {
		t.Errorf("again: got %v, want %v", err, ErrUpToDate)
	}
}

// TestUpgradeFails checks that data that can't be upgraded stay as they are. An upgrade was killed
// before: a start refuses its leftovers, and the next upgrade begins anew with the previous data.
func TestUpgradeFails(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	execute(t, s, "create table kept as select 'here' as v")

	// A prepared transaction is one of the things that pg_upgrade refuses.
	stop(t, s)
	c.Settings = maps.Clone(c.Settings) // shared with other tests
	c.Settings["max_prepared_transactions"] = "1"
	s = start(t, c)
	execute(t, s, "begin; create table pending (); prepare transaction 'pending'")
	stop(t, s)

	aside := filepath.Join(c.Dir, pendingName(c.Binaries.Major()))
	if err := os.Rename(filepath.Join(c.Dir, dataName), aside); err != nil {
		t.Fatal(err)
	}

	for _, state := range []string{"between the renames", "before the end"} {
		if s, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "upgrade-postgres") {
			t.Errorf("%s: got %v, want an error with the command", state, err)
			if err == nil {
				stop(t, s)
			}
		}
		if err := os.MkdirAll(filepath.Join(c.Dir, dataName), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := Upgrade(t.Context(), c, c.Binaries); err == nil ||
		!strings.Contains(err.Error(), "prepared transactions") {
		t.Errorf("a prepared transaction: got %v", err)
	}

	missing := c
	missing.Binaries.Version += 10000
	if err := os.WriteFile(filepath.Join(c.Dir, dataName, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Upgrade(t.Context(), missing, Binaries{}); err == nil ||
		!strings.Contains(err.Error(), "PostgreSQL 9, which is not installed") {
		t.Errorf("without the programs of the old version: got %v", err)
	}

	version := fmt.Sprintf("%d\n", c.Binaries.Major())
	if err := os.WriteFile(filepath.Join(c.Dir, dataName, "PG_VERSION"), []byte(version), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := value(t, start(t, c), "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVersionError(t *testing.T) {
	t.Parallel()

	b := func(version int) Binaries { return Binaries{fmt.Sprintf("/pg/%d/bin", version), version * 10000} }
	tests := map[string]VersionError{
		"the data directory was created by PostgreSQL 15, but /pg/17/bin contains the binaries of 17 " +
			"(installed: 17 in /pg/17/bin, 15 in /pg/15/bin): set SOCLE_POSTGRES_BIN=/pg/15/bin to keep using 15, " +
			"or run socle upgrade-postgres to upgrade the data to 17": {15, b(17), []Binaries{b(17), b(15)}},
		"the data directory was created by PostgreSQL 17, but /pg/15/bin contains the binaries of 15 " +
			"(installed: 15 in /pg/15/bin): install PostgreSQL 17 to keep using 17": {17, b(15), []Binaries{b(15)}},
	}
	for want, err := range tests {
		if got := err.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
