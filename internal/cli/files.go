//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/server"
)

func files(e environment) *cobra.Command {
	cmd := &cobra.Command{Use: "files", Short: "Manage and verify files", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(verifyFiles(e))

	return cmd
}

func verifyFiles(e environment) *cobra.Command {
	var sums bool
	cmd := &cobra.Command{
		Use:   "verify [--sums] [flags]",
		Short: "Verify that every file is intact in storage, and find orphans; --sums compares checksums", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := e.config(cmd)
			if err != nil {
				return err
			}

			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, _ int, secret []byte) error {
				return verifyProjects(ctx, c, d, secret, sums, cmd.OutOrStdout())
			})
		},
	}

	cmd.Flags().BoolVar(&sums, "sums", false, "read all files and compare their SHA-256")
	e.flags(cmd)

	return cmd
}

// errDamaged makes the command exit with 1.
var errDamaged = errors.New("some files are damaged")

func verifyProjects(
	ctx context.Context, c config.Config, d *server.Database, secret []byte, sums bool, out io.Writer,
) error {
	blobs, err := blob.OpenConfigured(c)
	if err != nil {
		return err
	}
	defer blobs.Close()

	registry, err := d.Registry(ctx, secret, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}

	folders, err := blobs.Folders(ctx, "projects")
	if err != nil {
		return err
	}

	statuses, err := d.Store.ProjectStatuses(ctx)
	if err != nil {
		return err
	}

	damaged := 0
	for _, id := range slices.SortedFunc(maps.Keys(statuses), func(a, b uuid.UUID) int {
		return bytes.Compare(a[:], b[:])
	}) {
		verify := func(p *projectdb.Project) error {
			n, err := verifyProject(ctx, p, blobs, sums, out)
			damaged += n

			return err
		}

		switch statuses[id] {
		case platform.Active:
			err = verify(registry.Open(id))
		case platform.Paused, platform.Deleted:
			err = registry.WithInactive(ctx, id, verify)
		default:
			fmt.Fprintf(out, "project %s: skipped, it is being created or purged\n", id)
			continue
		}

		if e := fault.Of(err); err != nil && e.Kind == fault.Conflict {
			fmt.Fprintf(out, "project %s: skipped: %s\n", id, e.Detail)
			continue
		}
		if err != nil {
			return fmt.Errorf("project %s: %w", id, err)
		}
	}

	for _, folder := range folders {
		if id, err := uuid.Parse(folder); err != nil || statuses[id] == "" {
			fmt.Fprintf(out, "orphan projects/%s: there is no such project\n", folder)
		}
	}

	if damaged > 0 {
		return errDamaged
	}

	return nil
}

// verifyProject verifies the files of a project and returns the number of damaged ones.
func verifyProject(
	ctx context.Context, p *projectdb.Project, blobs *blob.Store, sums bool, out io.Writer,
) (int, error) {
	v, err := object.Verify(ctx, p, blobs, sums, func(d object.Inconsistency) {
		if d.File == uuid.Nil {
			fmt.Fprintf(out, "project %s: orphan %s: %s\n", p.UUID, d.Key, d.What)
			return
		}

		fmt.Fprintf(out, "project %s: file %s %s (%s)\n", p.UUID, d.File, d.What, d.Key)
	})
	if err == nil {
		fmt.Fprintf(out, "project %s: %d files, %d damaged, %d orphans, %d in flight\n", p.UUID, v.Files,
			v.Damaged, v.Orphans, v.Moving)
	}

	return v.Damaged, err
}
