package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()

	if deno, err := filepath.Abs("../../bin/deno"); err == nil && os.Getenv(denoBin) == "" { // no script
		_ = os.Setenv(denoBin, deno) // fails only for an invalid name
	}

	testscript.Main(withPostgres{m}, map[string]func(){"socle": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // as package main does
		defer stop()

		os.Exit(Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}})
}

// withPostgres runs the tests with their own PostgreSQL.
type withPostgres struct{ m *testing.M }

func (c withPostgres) Run() int { return pgtest.Run(c.m) }

// run runs a command with its own data folder.
func run(t *testing.T, environ []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()

	var out, log bytes.Buffer
	status = Run(t.Context(), args,
		append([]string{"SOCLE_DATA_DIR=" + t.TempDir(), "SOCLE_POSTGRES_BIN=" + os.Getenv("SOCLE_POSTGRES_BIN")},
			environ...), &out, &log)

	return out.String(), log.String(), status
}

func TestUsage(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		args    []string
		environ []string
		status  int
		want    string
	}{
		{args: []string{"sreve"}, status: 2, want: "sreve"},
		{args: []string{"serve", "now"}, status: 2, want: `"now"`},
		{args: []string{"serve", "--adr", "x"}, status: 2, want: "--adr"},
		{args: []string{"serve", "--addr", "nowhere"}, status: 2, want: "nowhere"},
		{args: []string{"serve"}, environ: []string{"SOCLE_PASWORD_MIN=9"}, status: 2, want: "SOCLE_PASSWORD_MIN"},
		{args: []string{"admin", "make"}, status: 2, want: "make"},
		{args: []string{"migrate"}, environ: []string{"SOCLE_POSTGRES_BIN=/nowhere"}, status: 1, want: "/nowhere"},
	} {
		out, log, status := run(t, test.environ, test.args...)
		if status != test.status || out != "" || !strings.HasPrefix(log, "socle: ") || strings.Count(log, "\n") != 1 ||
			!strings.Contains(log, test.want) {
			t.Errorf("socle %v: got status %d, %q, %q, want status %d and one line with %q", test.args, status, out,
				log, test.status, test.want)
		}
	}
}

// TestChecksCreateNothing: a command that checks a server's data fails in a folder without any, and
// leaves it empty.
func TestChecksCreateNothing(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"doctor"}, {"databases"}, {"audit", "verify"}} {
		dir := t.TempDir()
		var out, log bytes.Buffer
		status := Run(t.Context(), args, []string{"SOCLE_DATA_DIR=" + dir}, &out, &log)
		if status != 1 || !strings.Contains(log.String(), "SOCLE_DATA_DIR") {
			t.Errorf("socle %v: got status %d, %q", args, status, log.String())
		}

		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("socle %v: created %v, %v", args, entries, err)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"serve", "--help"}, {"migrate", "--help"}, {"doctor", "--help"}} {
		out, log, status := run(t, nil, args...)
		if status != 0 || log != "" {
			t.Errorf("socle %v: got status %d, %q", args, status, log)
		}

		for _, s := range config.Settings() {
			if !strings.Contains(out, s.Name) || !strings.Contains(out, "--"+s.Flag) ||
				!strings.Contains(out, s.Meaning) {
				t.Errorf("socle %v: help has no %s:\n%s", args, s.Name, out)
			}
		}
	}
}

// TestFlagOfReference checks that a flag whose schema is a reference has the description of the
// member, not that of the schema.
func TestFlagOfReference(t *testing.T) {
	t.Parallel()

	out, _, _ := run(t, nil, "auth-settings", "update", "--help")
	if !regexp.MustCompile(`(?m)^ +--sms json +Phone numbers and text messages. Replaces all.$`).MatchString(out) {
		t.Errorf("got\n%s\nwant the description of sms", out)
	}
}

// TestCommandsOfOneNoun compares the commands of a noun alone with those among all.
func TestCommandsOfOneNoun(t *testing.T) {
	t.Parallel()

	all := &cobra.Command{Use: "socle"}
	if err := addRemote(all, environment{}, ""); err != nil {
		t.Fatal(err)
	}

	for _, group := range all.Commands() {
		alone := &cobra.Command{Use: "socle"}
		if err := addRemote(alone, environment{}, group.Name()); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(usages(alone), usages(group)); diff != "" {
			t.Errorf("socle %s (-alone +among all):\n%s", group.Name(), diff)
		}
	}
}

// usages returns the usage lines and flags of a command and all below it.
func usages(c *cobra.Command) (all []string) {
	eachCommand(c, func(c *cobra.Command) {
		if c.HasParent() {
			all = append(all, c.UseLine()+"\n"+c.LocalFlags().FlagUsages())
		}
	})

	return all
}

// TestMissingCommands checks that a build without the server knows every server command by name.
func TestMissingCommands(t *testing.T) {
	t.Parallel()

	var want []string
	for _, c := range serverCommands(environment{}) {
		if !c.HasSubCommands() {
			want = append(want, c.Name())
		}
		for _, leaf := range c.Commands() {
			want = append(want, c.Name()+" "+leaf.Name())
		}
	}

	got := slices.Sorted(slices.Values(serverCommandNames))
	if diff := cmp.Diff(got, slices.Sorted(slices.Values(want))); diff != "" {
		t.Errorf("serverCommandNames differs from the commands of the server (-names +commands):\n%s", diff)
	}

	for _, name := range serverCommandNames {
		root := &cobra.Command{Use: "socle", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(missingCommands()...)
		root.SetArgs(append(strings.Fields(name), "--addr", "x"))

		got, want := fmt.Sprint(root.Execute()), "socle "+name+" runs on Linux and macOS only"
		if got != want {
			t.Errorf("socle %s of a build without the server: got %q, want %q", name, got, want)
		}
	}
}

func TestPrints(t *testing.T) {
	t.Parallel()

	out, _, status := run(t, nil, "version")
	if status != 0 || !strings.HasPrefix(out, "socle ") {
		t.Errorf("version: got status %d, %q", status, out)
	}

	out, _, status = run(t, nil, "openapi")
	if status != 0 || !json.Valid([]byte(out)) {
		t.Errorf("openapi: got status %d, %q", status, out)
	}

	out, _, status = run(t, nil, "licenses")
	if status != 0 || !strings.Contains(out, "github.com/jackc/pgx/v5 v") || !strings.Contains(out, "AS IS") {
		t.Errorf("licenses: got status %d, %q", status, out)
	}

	out, _, status = run(t, nil)
	if status != 0 || !strings.Contains(out, "serve") {
		t.Errorf("without a command: got status %d, %q", status, out)
	}
}

// TestDoctor runs before the parallel tests. They revoke connect on the databases of their shared
// PostgreSQL, and the expected warning about access needs one that is open.
func TestDoctor(t *testing.T) {
	address := pgtest.URL(t)
	database := "SOCLE_DATABASE_URL=" + address
	createLogin(t, address, "doctor_exporter")

	for _, test := range []struct {
		environ []string
		status  int
		want    []string
	}{
		{environ: []string{database},
			status: 0, want: []string{"ok    storage", "ok    database", "ok    clock", "ok    statements",
				"warn  access", "warn  mail", "granted access by name: doctor_exporter"}},
		{
			environ: []string{database, "SOCLE_SMTP_URL=smtp://user:canary1@localhost",
				"SOCLE_MAIL_FROM=socle@example.com"}, status: 0, want: []string{"ok    mail", "socle@example.com"},
		},
		{environ: []string{database, "SOCLE_POSTGRES_BIN=/nowhere"},
			status: 1, want: []string{"FAIL  programs", "ok    storage"}},
		{environ: []string{database, "SOCLE_STORAGE_URL=file:///dev/null/x"},
			status: 1, want: []string{"FAIL  storage", "ok    database"}},
		{environ: []string{"SOCLE_DATABASE_URL=postgres://socle:canary1@127.0.0.1:1/x"},
			status: 1, want: []string{"FAIL  database", "ok    storage"}},
	} {
		out, log, status := run(t, test.environ, "doctor")
		if status != test.status {
			t.Errorf("doctor with %v: got status %d, %q, want %d\n%s", test.environ, status, log, test.status, out)
		}

		for _, s := range test.want {
			if !strings.Contains(out, s) {
				t.Errorf("doctor with %v: got no %q:\n%s", test.environ, s, out)
			}
		}

		if strings.Contains(out+log, "canary1") {
			t.Errorf("doctor prints a password:\n%s%s", out, log)
		}
	}
}

// createLogin creates the login of another program.
func createLogin(t *testing.T, address, name string) {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	if _, err := conn.Exec(t.Context(), "create role "+name+" login"); err != nil {
		t.Fatal(err)
	}
}

// TestCreateAdministrator pipes the password to the command's standard input.
func TestCreateAdministrator(t *testing.T) {
	database := "SOCLE_DATABASE_URL=" + pgtest.URL(t)
	create := func(password string, args ...string) (stdout, stderr string, status int) {
		t.Helper()

		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()

		if _, err := w.WriteString(password + "\n"); err != nil {
			t.Fatal(err)
		}

		w.Close()

		before := os.Stdin
		os.Stdin = r
		defer func() { os.Stdin = before }()

		return run(t, []string{database}, append([]string{"admin", "create"}, args...)...)
	}

	for _, test := range []struct {
		password, username, email string
		want                      string // "": success
	}{
		{"short", "ada", "ada@example.com", "password"},
		{"correct horse battery", "a", "ada@example.com", "username"},
		{"correct horse battery", "ada", "nobody", "email"},
		{"correct horse battery", "ada", "ada@example.com", ""},
		{"correct horse battery", "ada", "other@example.com", "taken"},
	} {
		out, log, status := create(test.password, "--username", test.username, "--email", test.email)
		if test.want == "" && (status != 0 || !strings.Contains(out, test.username)) {
			t.Errorf("%v: got status %d, %q, %q", test, status, out, log)
		}
		if test.want != "" &&
			(status != 1 || !strings.Contains(log, test.want) || strings.Contains(log, test.password)) {
			t.Errorf("%v: got status %d, %q", test, status, log)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"one":                         "one",
		"one:\n\ttwo\n\tthree\n":      "one: two; three",
		"failed to connect:\n a: b\n": "failed to connect: a: b",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
