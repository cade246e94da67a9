package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/repository"
)

// pull writes the files of a repository from its project.
type pull struct {
	push
	files repository.Files
	notes []string
}

func newPull(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pull", Short: "Write the files of a repository from its project", Args: noArgs, GroupID: groupRepository,
		Long: "Write supabase/config.toml with the project's settings and buckets, the texts of its mails, and its schema: " +
			"what exists as the first migration, or what was changed since as the next one, which is recorded as " +
			"applied. Secrets become variables such as env(AUTH_EXTERNAL_GITHUB_SECRET), without values. A file that " +
			"differs is replaced after a question, or with --yes.",
		Example: "  socle pull --project Library",
	}

	e.addProjectFlags(cmd)
	cmd.Flags().BoolP("yes", "y", false, "replace files that differ")
	_ = cmd.Flags().MarkHidden("json") // files

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := openPull(cmd, e)
		if err != nil {
			return err
		}

		return p.run()
	}

	return cmd
}

// openPull selects the folder and the project. The folder need not have a repository yet.
func openPull(cmd *cobra.Command, e environment) (*pull, error) {
	folder, err := repositoryFolder(cmd)
	if err != nil {
		dir, _ := cmd.Flags().GetString("dir")
		if !errors.Is(err, repository.ErrNone) {
			return nil, err
		}
		if folder, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}

	repo := &repository.Repository{Root: folder}
	p := &pull{push: push{e: e, cmd: cmd, repo: repo}}
	p.migrations = &migrationState{e: e, dir: shortPath(repo.Path(repository.Migrations))}

	files, err := readMigrations(p.migrations.dir, folder)
	if err != nil {
		return nil, err
	}

	p.migrations.files = files.files
	return p, p.connectProject()
}

// run writes the files, after a question if it replaces some.
func (p *pull) run() error {
	if err := p.load(); err != nil {
		return err
	}
	if err := p.loadContainers(func(string) bool { return true }); err != nil {
		return err
	}
	err := p.loadVault()
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == "schema_taken" {
		err = nil // it has a schema vault of its own
	}
	if err != nil {
		return err
	}

	snapshot := repository.Snapshot{Name: p.state.name, Auth: p.state.auth, Rest: p.state.rest,
		SecretNames: p.state.secrets, Containers: p.state.containers}
	if open := p.state.mode == modeSupabase; open || p.state.mode == modeClosed {
		snapshot.OpenTables = &open
	}

	if err := p.addFunctions(&snapshot); err != nil {
		return err
	}

	p.files, p.notes = repository.Render(snapshot)

	replaced, err := p.compare()
	if err != nil {
		return err
	}
	if err := p.confirm(replaced); err != nil {
		return err
	}

	if err := p.write(); err != nil {
		return err
	}

	for _, note := range p.notes {
		fmt.Fprintf(p.cmd.ErrOrStderr(), "note: %s\n", sanitize(note))
	}

	if err := p.changeLink(func(l *repositoryLink) {
		if l.Project == "" {
			l.setProject(p.client.Project)
		}
	}); err != nil {
		return err
	}

	return p.pullSchema()
}

// addFunctions adds what a configuration says of functions. Their files are not the project's.
func (p *pull) addFunctions(s *repository.Snapshot) error {
	deployed, err := deployedFunctions(p.cmd.Context(), p.client)
	if err != nil {
		return err
	}

	s.Functions = map[string]bool{}
	for name, f := range deployed {
		s.Functions[name] = f.VerifyJWT
	}

	if s.FunctionTables, err = repository.FunctionTables(p.repo.Root); err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		folder := p.repo.Path(repository.FunctionsFolder + "/" + name)
		if _, err := os.Stat(folder); err != nil && s.FunctionTables[name]["entrypoint"] == nil {
			fmt.Fprintf(p.cmd.ErrOrStderr(), "note: the files of the edge function %s are not here: a project has its bundle only\n",
				sanitize(name))
		}
	}

	return nil
}

// compare drops the files that are as they should be, and returns those that differ.
func (p *pull) compare() ([]string, error) {
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		text, err := os.ReadFile(p.repo.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))) == p.files[name]:
			delete(p.files, name)
		default:
			differ = append(differ, name)
		}
	}

	return differ, nil
}

// confirm asks whether to replace files.
func (p *pull) confirm(files []string) error {
	if yes, _ := p.cmd.Flags().GetBool("yes"); yes || len(files) == 0 {
		return nil
	}

	names := strings.Join(files, ", ")
	if _, ok := terminal(p.cmd.InOrStdin()); !ok {
		return fmt.Errorf("%w: pull needs --yes to replace %s", errUsage, names)
	}

	yes, err := ask(p.cmd, "Replace "+names+", with its comments?")
	if err != nil {
		return err
	}
	if !yes {
		return errCanceled
	}

	return nil
}

// write writes the files.
func (p *pull) write() error {
	w := p.cmd.OutOrStdout()
	if len(p.files) == 0 {
		fmt.Fprintf(w, "%s is as the project.\n", repository.ConfigFile)
	}

	root, err := os.OpenRoot(p.repo.Root) // a stranger's links may lead out of it
	if err != nil {
		return err
	}
	defer root.Close()

	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
			return err
		}
		if err := replaceFile(root, name, p.files[name]); err != nil {
			return err
		}

		fmt.Fprintf(w, "Wrote %s.\n", shortPath(p.repo.Path(name)))
	}

	return nil
}

// pullSchema writes what exists in the project as the first migration, or what was changed since
// the last one as the next.
func (p *pull) pullSchema() error {
	m := p.migrations
	for _, f := range m.files {
		if a := m.find(f.Version); a == nil || a.incomplete {
			return fmt.Errorf("the schema is not pulled: %s is not applied; push it first", f.path)
		}
	}

	for _, a := range m.applied {
		if !slices.ContainsFunc(m.files, func(f migration) bool { return f.Version == a.Version }) {
			return fmt.Errorf("the schema is not pulled: the project has the migration %s_%s, whose file is not in %s",
				a.Version, a.Name, m.dir)
		}
	}

	name := "changes"
	if len(m.files) == 0 {
		name = "existing"
	}

	return m.write(p.cmd, m.files, name)
}
