package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// explanation is why a request answered as it did.
type explanation struct {
	Statement   *string
	Role        *string
	Table       *string
	RowSecurity *bool
	Privileges  []string
	Policies    []struct {
		Name, Command    string
		Using, WithCheck *string
	}
	Causes []struct {
		Text    string
		Command *string
	}
}

func newExplain(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [REQUEST-ID]",
		Short: "Explain why a request of an application failed, or found no rows",
		Long: "Explain a request of the log: the shape of its SQL, its role, the policies that apply, missing " +
			"privileges, and the command that mends it.\n\nREQUEST-ID is the response header X-Request-Id, or the id " +
			"of socle requests list. Without it, the latest failure of an application is explained.",
		Example: "  socle explain\n  socle explain 81a2f19e",
		GroupID: groupStart, Args: cobra.MaximumNArgs(1),
	}

	e.addConnectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}

		d, err := describe()
		if err != nil {
			return err
		}
		if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
			return err
		}

		id, err := requestID(cmd, c, args)
		if err != nil {
			return err
		}

		reply, err := c.Do(cmd.Context(), client.Request{Method: http.MethodGet,
			Path: requestsPath(c) + "/" + url.PathEscape(id) + "/explanation"})
		switch {
		case err != nil:
			return explain(err)
		case asJSON(cmd):
			return printJSON(cmd.OutOrStdout(), reply)
		}

		return printExplanation(cmd.OutOrStdout(), reply)
	}

	return cmd
}

func requestsPath(c *client.Client) string {
	return "/projects/" + url.PathEscape(c.Project) + "/requests"
}

const (
	minShortID      = 4  // digits
	maxRequestPages = 20 // searched for a short id
)

// requestID returns the UUID of the request of an argument: a UUID, its last digits, or none for
// the latest failure of an application.
func requestID(cmd *cobra.Command, c *client.Client, args []string) (string, error) {
	query := url.Values{"limit": {"100"}}
	if len(args) == 0 {
		query = url.Values{"limit": {"1"}, "minStatus": {"400"}, "route": {"/rest/v1/"}}
	} else if uuid.Validate(args[0]) == nil {
		return args[0], nil
	} else if len(args[0]) < minShortID {
		return "", fmt.Errorf("%w: REQUEST-ID is a UUID or its last %d digits at least", errUsage, minShortID)
	}

	for range maxRequestPages {
		reply, err := c.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: requestsPath(c), Query: query})
		if err != nil {
			return "", explain(err)
		}

		var requests []struct{ UUID string }
		if err := reply.Into(&requests); err != nil {
			return "", err
		}

		for _, r := range requests {
			if len(args) == 0 || strings.HasSuffix(r.UUID, strings.ToLower(args[0])) {
				return r.UUID, nil
			}
		}
		if len(args) == 0 || !turnPage(reply, query) {
			break
		}
	}

	if len(args) == 0 {
		return "", errors.New("no request for rows has failed; list all with: socle requests list")
	}

	return "", fmt.Errorf("the log has no request %q; list them with: socle requests list", args[0])
}

// printExplanation prints first what happened, then why, and what mends it.
func printExplanation(w io.Writer, reply *client.Reply) error {
	var e explanation
	if err := reply.Into(&e); err != nil {
		return err
	}

	var request struct{ Request json.RawMessage }
	if err := reply.Into(&request); err != nil {
		return err
	}

	v, err := decode(request.Request)
	if err != nil {
		return err
	}

	o, _ := v.(record)
	derived := deriveRequest(o)
	shown := func(name string) string { return cell(name, derived.value(name)) }
	failure := strings.TrimSpace(shown("errorCode") + " " + shown("errorMessage"))

	lines := [][]string{{"request", shown("method") + " " + shown("request")}, {"at", shown("at")},
		{"answer", strings.TrimSpace(shown("status") + " " + failure)}, {"rows", shown("rows")},
		{"role", shown("role")}, {"end user", shown("endUserUuid")}}
	if e.Statement != nil {
		lines = append(lines, []string{"sql", sanitize(*e.Statement)})
	}
	if e.Table != nil {
		lines = append(lines, []string{"privileges", strings.Join(e.Privileges, ", ")})
		security := "off: policies do not apply"
		if *e.RowSecurity {
			security = "on"
		}
		lines = append(lines, []string{"row security", security})
	}
	for _, p := range e.Policies {
		text := p.Name + " for " + p.Command
		if p.Using != nil {
			text += " using " + *p.Using
		}
		if p.WithCheck != nil {
			text += " with check " + *p.WithCheck
		}
		lines = append(lines, []string{"policy", sanitize(text)})
	}

	filled := lines[:0]
	for _, line := range lines {
		if line[1] != "" {
			filled = append(filled, line)
		}
	}
	if err := (grid{rows: filled}).print(w); err != nil {
		return err
	}

	for _, f := range e.Causes {
		fmt.Fprintf(w, "\n%s\n", sanitize(f.Text))
		if f.Command != nil {
			fmt.Fprintf(w, "  %s\n", sanitize(*f.Command))
		}
	}

	return nil
}
