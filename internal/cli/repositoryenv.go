package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/repository"
)

func newEnv(e environment) *cobra.Command {
	var names []string
	for _, f := range repository.Frameworks {
		names = append(names, f.Name)
	}

	cmd := &cobra.Command{
		Use: "env", Short: "Print or write the variables by which an application finds its project", Args: noArgs,
		GroupID: groupRepository,
		Long: "Print the address of the repository's project and its publishable key, as lines of a file .env. A key is " +
			"shown only once, so this machine keeps the one that it created; without one, a new key is created. It " +
			"acts as the role anon, and may be in a browser.",
		Example: "  socle env --write .env.local",
	}

	e.addProjectFlags(cmd)
	cmd.Flags().String("framework", "", strings.Join(names, ", ")+" (default: that of package.json)")
	cmd.Flags().String("write", "", "file whose lines of these variables to replace, or to add")
	_ = cmd.RegisterFlagCompletionFunc("framework", // the flag exists
		cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.Flags().MarkHidden("json") // lines for a file

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := repositoryFolder(cmd)
		if err != nil {
			return err
		}

		p := &push{e: e, cmd: cmd, repo: &repository.Repository{Root: folder}, migrations: &migrationState{e: e}}
		framework := p.repo.Framework()
		if name, _ := cmd.Flags().GetString("framework"); name != "" {
			chosen, ok := repository.FindFramework(name)
			if !ok {
				return fmt.Errorf("%w: --framework is one of %s", errUsage, strings.Join(names, ", "))
			}
			framework = chosen
		}

		if err := p.connectProject(); err != nil {
			return err
		}
		if err := p.findKey(); err != nil {
			return err
		}

		file, _ := cmd.Flags().GetString("write")
		return writeVariables(cmd, file, framework.Variables(p.client.URL+p.inProject(""), p.link.Key))
	}

	return cmd
}

// connectProject selects the project, and fails without one.
func (p *push) connectProject() error {
	if err := p.connect(); err != nil {
		return err
	}
	if p.client.Project == "" {
		return fmt.Errorf("%w: this machine knows no project of %s: push it, link it by socle link PROJECT, or use --project",
			errUsage, p.repo.Root)
	}

	return nil
}

// findKey finds the key that this machine keeps, if the project still has it, and creates one
// otherwise.
func (p *push) findKey() error {
	var project struct{ Name string }
	if err := p.get(p.cmd.Context(), p.inProject(""), nil, &project); err != nil {
		return err
	}

	var keys []struct{ UUID string }
	query := url.Values{"limit": {strconv.Itoa(namesPerPage)}}
	if err := p.get(p.cmd.Context(), p.inProject("/keys"), query, &keys); err != nil {
		return err
	}

	exists := func(k struct{ UUID string }) bool { return k.UUID == p.link.KeyUUID }
	if p.link.Key != "" && slices.ContainsFunc(keys, exists) {
		return nil
	}

	p.repo.Config.Name = project.Name
	if err := p.createKey(); err != nil {
		return err
	}

	fmt.Fprintln(p.cmd.ErrOrStderr(), "Created a publishable key. List them: socle keys list")
	return nil
}

// writeVariables prints variables, or writes them to a file; "": none.
func writeVariables(cmd *cobra.Command, file string, variables []repository.Variable) error {
	if file == "" {
		_, err := fmt.Fprint(cmd.OutOrStdout(), repository.MergeVariables("", variables))
		return err
	}

	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	if err := replacePath(file, repository.MergeVariables(string(text), variables)); err != nil {
		return err
	}

	for _, v := range variables {
		fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s to %s.\n", v.Name, file)
	}

	return nil
}
