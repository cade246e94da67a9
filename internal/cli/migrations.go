package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// migrationsCommand is a command over the migrations of a folder and a project.
type migrationsCommand struct {
	e        environment
	document *description
}

// addMigrations adds the commands over migrations. Their files are local, so they are no generated
// ones.
func addMigrations(group *cobra.Command, d *description, e environment) {
	m := &migrationsCommand{e: e, document: d}

	create := &cobra.Command{Use: "new NAME", Short: "Create the file of a migration",
		Args: exactArgs(1), RunE: m.create, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Create an empty file migrations/<timestamp>_<name>.sql. Its statements run in one transaction; with " +
			"the first line '-- socle: no-transaction' each is a transaction of its own."}
	status := &cobra.Command{Use: "status", Short: "List migrations and whether they are applied",
		Args: noArgs, RunE: m.status}
	up := &cobra.Command{Use: "up", Short: "Apply the migrations that the project does not have",
		Args: noArgs, RunE: m.up, Long: "Apply the migrations that the project does not have, in order, until one fails."}
	diff := &cobra.Command{Use: "diff [NAME]", Short: "Write what changed in the project as the next migration",
		Args: cobra.MaximumNArgs(1), RunE: m.diff, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Compare the project with the files, which the server applies to an empty scratch database, and write " +
			"what the files lack as the next one. It is recorded as applied in this project. Objects that no " +
			"statement makes equal are listed, and the command exits with 1."}
	pull := &cobra.Command{Use: "pull [NAME]", Short: "Write what exists in the project as the first migration",
		Args: cobra.MaximumNArgs(1), RunE: m.pull, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Write the schema of the project as the first migration, and record it as applied in this project."}

	up.Flags().Bool("allow-out-of-order", false, "apply a migration although a newer one is applied")
	up.Flags().Bool("seed", false, "run "+seedFile+" of the folder, or next to it, afterwards")

	for _, c := range []*cobra.Command{create, status, up, diff, pull} {
		c.Flags().String("dir", "migrations", "folder of the migrations")
		_ = c.MarkFlagDirname("dir") // the flag exists
		if c != create {
			e.addConnectionFlags(c)
		}

		group.AddCommand(c)
	}
}

// seedFile is the file with rows for a new database, in the folder of the migrations or next to it.
const seedFile = "seed.sql"

// create creates an empty file.
func (m *migrationsCommand) create(cmd *cobra.Command, args []string) error {
	dir, _ := cmd.Flags().GetString("dir")
	f, err := readMigrations(dir, "")
	if err != nil {
		return err
	}

	version, err := nextVersion(f.files)
	if err != nil {
		return err
	}

	path, err := writeMigration(dir, version, args[0], "")
	if err != nil {
		return err
	}

	fmt.Fprintln(cmd.OutOrStdout(), path)
	return nil
}

// status lists the migrations of the folder and of the project.
func (m *migrationsCommand) status(cmd *cobra.Command, _ []string) error {
	s, err := m.open(cmd)
	if err != nil {
		return err
	}

	return s.print(cmd)
}

// up applies pending migrations.
func (m *migrationsCommand) up(cmd *cobra.Command, _ []string) error {
	s, err := m.open(cmd)
	if err != nil {
		return err
	}

	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s; create a migration by socle migrations new NAME, or give the folder by --dir",
			s.dir)
	}

	outOfOrder, _ := cmd.Flags().GetBool("allow-out-of-order")
	pending, err := s.pending(outOfOrder)
	if err != nil {
		return err
	}

	if len(pending) == 0 {
		if err := printNothing(cmd, len(s.files)); err != nil {
			return err
		}
	}

	for len(pending) > 0 {
		n := batch(pending)
		reply, err := s.apply(cmd, pending[:n], map[string]any{"allow_out_of_order": outOfOrder})
		if err != nil {
			return err
		}

		if err := s.printApplied(cmd, reply); err != nil {
			return err
		}

		pending = pending[n:]
	}

	if seed, _ := cmd.Flags().GetBool("seed"); seed {
		return s.seed(cmd)
	}

	return nil
}

// printApplied reports the migrations that a request applied, and what it left out of them.
func (s *migrationState) printApplied(cmd *cobra.Command, reply *client.Reply) error {
	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), reply)
	}

	var applied struct {
		Applied []struct {
			Version, Name string
			DurationMs    float64
		}
		Notes        []sqlNote
		OmittedNotes int
	}
	if err := reply.Into(&applied); err != nil {
		return err
	}

	for _, a := range applied.Applied {
		fmt.Fprintf(cmd.OutOrStdout(), "Applied %s_%s in %v.\n", a.Version, sanitize(a.Name),
			(time.Duration(a.DurationMs*1000) * time.Microsecond).Round(time.Millisecond))
	}

	s.printNotes(cmd, applied.Notes)
	if applied.OmittedNotes > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %d further notes are omitted\n", applied.OmittedNotes)
	}

	return nil
}

// printNotes prints notes on migrations.
func (s *migrationState) printNotes(cmd *cobra.Command, notes []sqlNote) {
	printSQLNotes(cmd.ErrOrStderr(), notes, func(n sqlNote) string {
		for _, f := range s.files {
			if f.Version == n.Version {
				return f.path
			}
		}
		return n.Version
	})
}

// printNothing reports that all files are applied.
func printNothing(cmd *cobra.Command, files int) error {
	if asJSON(cmd) {
		return printIndented(cmd.OutOrStdout(),
			fmt.Appendf(nil, `{"content": {"applied": [], "alreadyApplied": %d}, "metadata": {}}`, files))
	}

	_, err := fmt.Fprintln(cmd.OutOrStdout(), "Nothing to apply.")
	return err
}

// diff writes the next migration.
func (m *migrationsCommand) diff(cmd *cobra.Command, args []string) error {
	s, err := m.open(cmd)
	if err != nil {
		return err
	}

	pending, err := s.pending(true)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("%s is not applied; apply it first: socle migrations up", pending[0].path)
	}

	for _, a := range s.applied {
		if !slices.ContainsFunc(s.files, func(f migration) bool { return f.Version == a.Version }) {
			return fmt.Errorf("the project has the migration %s_%s, whose file is not in %s", a.Version, a.Name, s.dir)
		}
	}

	return s.write(cmd, s.files, cmp.Or(strings.Join(args, ""), "changes"))
}

// pull writes the first migration.
func (m *migrationsCommand) pull(cmd *cobra.Command, args []string) error {
	s, err := m.open(cmd)
	if err != nil {
		return err
	}
	if len(s.files) > 0 {
		return fmt.Errorf("%s exists; write what changed since: socle migrations diff", s.files[0].path)
	}
	if len(s.applied) > 0 {
		return fmt.Errorf("the project has migrations, such as %s_%s, whose files are not in %s",
			s.applied[0].Version, s.applied[0].Name, s.dir)
	}

	return s.write(cmd, nil, cmp.Or(strings.Join(args, ""), "existing"))
}

// write writes the differences as files, and records them as applied.
func (s *migrationState) write(cmd *cobra.Command, files []migration, name string) error {
	if !newName.MatchString(name) {
		return badName(name)
	}

	reply, err := s.send(cmd, "/migrations/diff", files, nil)
	if err != nil {
		return err
	}

	var d struct {
		Files       []string
		Warnings    []struct{ Statement, Message string }
		Differences []struct{ Kind, Name, Message string }
	}
	if err := reply.Into(&d); err != nil {
		return err
	}

	written, err := s.writeFiles(d.Files, name)
	if err == nil && len(written) > 0 {
		_, err = s.send(cmd, "/migrations", written, map[string]any{"record_only": true})
	}

	if err != nil {
		for _, f := range written {
			err = errors.Join(err, os.Remove(f.path))
		}
		return err
	}

	var incomplete error
	if len(d.Differences) > 0 {
		incomplete = fmt.Errorf("the files do not remove %d of the differences: write these changes by hand, as the "+
			"next migration", len(d.Differences))
	}

	if asJSON(cmd) {
		return errors.Join(printJSON(cmd.OutOrStdout(), reply), incomplete)
	}

	for _, w := range d.Warnings {
		first, _, _ := strings.Cut(w.Statement, "\n")
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n  %s\n", sanitize(w.Message), sanitize(first))
	}

	for _, left := range d.Differences {
		fmt.Fprintf(cmd.ErrOrStderr(), "still differs: %s %s: %s\n",
			left.Kind, sanitize(left.Name), sanitize(left.Message))
	}

	for _, f := range written {
		fmt.Fprintln(cmd.OutOrStdout(), f.path)
	}

	if len(written)+len(d.Differences) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "No differences.")
	}

	return incomplete
}

// writeFiles writes files with ascending versions.
func (s *migrationState) writeFiles(texts []string, name string) ([]migration, error) {
	all := s.files
	var written []migration
	for i, text := range texts {
		part := name
		if i > 0 {
			part = fmt.Sprintf("%s_%d", name, i+1)
		}

		version, err := nextVersion(all)
		if err != nil {
			return written, err
		}

		path, err := writeMigration(s.dir, version, part, text)
		if err != nil {
			return written, err
		}

		f := migration{Version: version, Name: part, SQL: text, Checksum: checksum(text), path: path}
		all, written = append(all, f), append(written, f)
	}

	return written, nil
}
