package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/repository"
)

func newInit(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "init", Short: "Write the folder supabase of a new repository", Args: noArgs, GroupID: groupRepository,
		Long: "Write supabase/config.toml, which has the settings of a project, and a .gitignore beside it. Files that " +
			"exist stay as they are: a repository of a Supabase application needs no init, but socle push.",
	}

	name := cmd.Flags().String("name", "", "name of the project (default: that of the folder)")
	cmd.Flags().String("dir", ".", "folder of the repository")
	_ = cmd.MarkFlagDirname("dir") // the flag exists

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, _ := cmd.Flags().GetString("dir")
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}

		return initialize(cmd, dir, *name)
	}

	return cmd
}

// initialize writes the files of a new repository that are missing.
func initialize(cmd *cobra.Command, dir, name string) error {
	repo := &repository.Repository{Root: dir}
	repo.Config.Name = name

	for _, f := range repo.NewFiles() {
		path := repo.Path(f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}

		out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s exists.\n", f.Name)
			continue
		}
		if err != nil {
			return err
		}

		_, err = out.WriteString(f.Text)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s.\n", f.Name)
	}

	fmt.Fprintln(cmd.ErrOrStderr(), "Write a migration: socle migrations new create_books --dir "+repository.Migrations+
		"\nSee what a push changes: socle push --dry-run")

	return nil
}

func newLink(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "link PROJECT|--remove", Short: "Link a repository to a project that exists, for socle push and pull",
		Args: cobra.MaximumNArgs(1), GroupID: groupRepository, ValidArgsFunction: completeProjects(e),
		Long: "Link a repository to a project, by name or UUID. The link is kept on this machine, beside the log-in. " +
			"socle push links the project that it creates.",
	}

	addFolder(cmd)
	cmd.Flags().String("url", "", "URL of the server (default: as of all commands)")
	remove := cmd.Flags().Bool("remove", false, "forget the project; the next push creates one")

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := repositoryFolder(cmd)
		if err != nil {
			return err
		}

		d, err := describe()
		if err != nil {
			return err
		}

		c, err := e.client(cmd)
		if err != nil {
			return err
		}

		if *remove != (len(args) == 0) {
			return fmt.Errorf("%w: link needs a project, or --remove", errUsage)
		}
		if *remove {
			return e.withLink(folder, c.URL, func(l *repositoryLink) error {
				l.setProject("")
				return nil
			})
		}

		c.Project = args[0]
		if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
			return err
		}

		var project struct{ UUID, Name string }
		reply, err := c.Do(cmd.Context(), client.Request{
			Method: http.MethodGet,
			Path:   "/projects/" + url.PathEscape(c.Project),
		})
		if err != nil {
			return err
		}
		if err := reply.Into(&project); err != nil {
			return err
		}

		if err := e.withLink(folder, c.URL, func(l *repositoryLink) error {
			l.setProject(project.UUID)
			return nil
		}); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "Linked %s to %s, %s.\n", sanitize(folder), sanitize(project.Name), project.UUID)
		return nil
	}

	return cmd
}
