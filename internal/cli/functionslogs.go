package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/tick"
)

// functionLine is a line of the log of functions.
type functionLine struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	Function string    `json:"function"`
	Stream   string    `json:"stream"`
	Message  string    `json:"message"`
}

func newFunctionLogs(d *description, e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logs [NAME]", Short: "Print what edge functions logged", Args: cobra.MaximumNArgs(1),
		Long: "Print the last lines that a function wrote, or all functions, and with --follow those to come. Errors name " +
			"the lines of the sources. The log has a week, up to 64 MB.",
		Example: "  socle functions logs hello --follow",
	}

	e.addConnectionFlags(cmd)
	cmd.Flags().BoolP("follow", "f", false, "go on until the command is interrupted")
	cmd.Flags().Int("limit", 100, "lines to begin with, at most 100")

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		limit, _ := cmd.Flags().GetInt("limit")
		if limit < 1 || limit > followLimit {
			return fmt.Errorf("%w: --limit is 1 to %d", errUsage, followLimit)
		}

		c, err := e.projectClient(cmd, d)
		if err != nil {
			return err
		}

		query := url.Values{"sort": {"id"}, "order": {"desc"}}
		if len(args) > 0 {
			query.Set("function", args[0])
		}

		follow, _ := cmd.Flags().GetBool("follow")
		err = printFunctionLog(cmd, c, query, limit, follow)
		if cmd.Context().Err() != nil {
			return nil
		}

		return explain(err)
	}

	return cmd
}

// printFunctionLog prints the last lines, and with follow those to come.
func printFunctionLog(cmd *cobra.Command, c *client.Client, query url.Values, limit int, follow bool) error {
	var last int64
	for {
		lines, err := linesAfter(cmd.Context(), c, query, last, limit)
		if err != nil {
			return err
		}

		for _, l := range lines {
			if err := l.print(cmd.OutOrStdout(), asJSON(cmd)); err != nil {
				return err
			}
			last = l.ID
		}
		if !follow {
			return nil
		}

		if tick.Pause(cmd.Context(), followInterval) != nil {
			return nil
		}
	}
}

// linesAfter returns the lines after the one with an ID, the oldest first. Of the log before the
// command, which is after 0, it returns the last ones up to a limit.
func linesAfter(
	ctx context.Context, c *client.Client, query url.Values, id int64, limit int,
) ([]functionLine, error) {
	if id > 0 {
		limit = followLimit
	}
	query.Set("limit", strconv.Itoa(limit))

	var all []functionLine
	for page := 1; ; page++ {
		query.Set("page", strconv.Itoa(page))
		reply, err := c.Do(ctx, client.Request{Method: http.MethodGet,
			Path: "/projects/" + url.PathEscape(c.Project) + "/edge-function-log", Query: query})
		if err != nil {
			return nil, err
		}

		var lines []functionLine
		if err := reply.Into(&lines); err != nil {
			return nil, err
		}

		n := slices.IndexFunc(lines, func(l functionLine) bool { return l.ID <= id })
		if n >= 0 {
			lines = lines[:n]
		}
		all = append(all, lines...)
		if id == 0 || n >= 0 || len(lines) < limit {
			break
		}
	}

	slices.SortFunc(all, func(a, b functionLine) int { return int(a.ID - b.ID) })
	return slices.CompactFunc(all, func(a, b functionLine) bool { return a.ID == b.ID }), nil
}

func (l functionLine) print(w io.Writer, asJSON bool) error {
	if asJSON {
		text, err := json.Marshal(l)
		if err == nil {
			_, err = fmt.Fprintln(w, string(text))
		}
		return err
	}

	_, err := fmt.Fprintf(w, "%s  %s  %-6s  %s\n", l.At.Local().Format(time.DateTime), sanitize(l.Function),
		sanitize(l.Stream), sanitize(l.Message))
	return err
}
