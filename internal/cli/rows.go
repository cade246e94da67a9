package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
)

const (
	defaultRows   = 100             // listed without --limit
	tokenLifetime = 5 * time.Minute // lifetime of the token for the rows API
	csvType       = "text/csv"
)

// rowsCommand is a command over the rows API of a project.
type rowsCommand struct {
	remote
	method string
	verb   string // past, for the note: inserted
}

// addRows adds the commands over the rows API.
func addRows(group *cobra.Command, d *description, e environment) {
	for _, c := range []struct{ use, short, example, method, verb string }{
		{"list TABLE [FILTER...]", "List rows",
			"socle rows list books price=lt.10 title=like.A* --order title", http.MethodGet, ""},
		{"insert TABLE", "Insert rows from JSON or CSV",
			`socle rows insert books --data '{"title": "Emma"}'`, http.MethodPost, "inserted"},
		{"update TABLE FILTER...", "Update rows",
			`socle rows update books id=eq.1 --data '{"price": 8}'`, http.MethodPatch, "updated"},
		{"delete TABLE FILTER...", "Delete rows",
			"socle rows delete books price=is.null", http.MethodDelete, "deleted"},
	} {
		r := &rowsCommand{remote: remote{document: d, e: e}, method: c.method, verb: c.verb}
		r.Method, r.Summary = c.method, c.short

		cmd := &cobra.Command{Use: c.use, Short: c.short, Example: "  " + c.example,
			Args: cobra.MinimumNArgs(1), RunE: r.run,
			Long: c.short + ", with the rights of --role, or as the end user of --as.\n\n" +
				"A FILTER is column=operator.value, as in the query string of the rows API: id=eq.1, title=like.A*, " +
				"price=lt.10, or=(a.is.null,b.eq.2).",
			ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return r.completeNames(cmd, "", "table", nil)
			}}

		r.addFlags(cmd)
		group.AddCommand(cmd)
	}

	addRowsBatch(group, d, e)
}

func (r *rowsCommand) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	switch r.method {
	case http.MethodGet:
		flags.String("select", "", "columns and embedded tables: title,author(name)")
		flags.String("order", "", "order: title.asc,price.desc.nullslast")
		flags.Int("limit", defaultRows, "maximum number of rows")
		flags.Int("offset", 0, "rows to skip")
		flags.Bool("all", false, "list all rows")
		exclude(cmd, "all", "limit")
	case http.MethodDelete:
		flags.BoolP("yes", "y", false, "do not ask for confirmation")
	default:
		flags.String("data", "", "row as a JSON object, or rows as a JSON array")
		flags.String("file", "", "file with JSON or CSV, - for standard input (default without --data)")
		exclude(cmd, "data", "file")
	}

	if r.method == http.MethodPatch || r.method == http.MethodDelete {
		flags.Bool("all", false, "change all rows, without a filter")
	}
	if r.method != http.MethodGet {
		addIdempotencyKey(cmd)
	}

	r.addCallerFlags(cmd)
}

// addIdempotencyKey adds the flag for the key of a write.
func addIdempotencyKey(cmd *cobra.Command) {
	cmd.Flags().String("idempotency-key", "", "text that makes the change at most once, however often it is sent within a day")
}

// addCallerFlags adds the flags that choose whose rights the request has.
func (r *rowsCommand) addCallerFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.String("role", "service_role", "role in the database: anon, authenticated, or service_role, which bypasses policies")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions( // the flag exists
		[]string{"anon", "authenticated", "service_role"}, cobra.ShellCompDirectiveNoFileComp))
	flags.String("as", "", "end user whose rows these are: an e-mail address or a UUID; or anon")
	exclude(cmd, "as", "role")
	r.e.addConnectionFlags(cmd)
}

func (r *rowsCommand) run(cmd *cobra.Command, args []string) error {
	if err := noEmptyArg(cmd, args[:1]); err != nil {
		return err
	}

	req, err := r.request(cmd, args)
	if err != nil {
		return err
	}

	if err := r.confirm(cmd, args); err != nil {
		return err
	}

	res, text, err := r.exchange(cmd, req)
	if err != nil {
		return err
	}

	return r.print(cmd, res, text)
}

// exchange sends a request to the rows API of the project. It returns the response with its body.
func (r *rowsCommand) exchange(cmd *cobra.Command, req client.Request) (*http.Response, []byte, error) {
	c, err := r.e.client(cmd)
	if err != nil {
		return nil, nil, err
	}

	if err := (finder{r.document, c}).selectProject(cmd.Context()); err != nil {
		return nil, nil, err
	}

	req.Path = "/projects/" + url.PathEscape(c.Project) + "/rest/v1/" + req.Path
	if c.Token, err = r.e.rowsCredentials(cmd, c, req.Header); err != nil {
		return nil, nil, err
	}
	if flag := cmd.Flags().Lookup("idempotency-key"); flag != nil && flag.Changed {
		req.Header.Set("Idempotency-Key", flag.Value.String())
	}

	c.Project = ""

	res, err := c.Open(cmd.Context(), req)
	if err != nil {
		return nil, nil, r.explain(cmd, err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the response: %w", err)
	}

	return res, text, nil
}

// request returns the request, whose path is the table.
func (r *rowsCommand) request(cmd *cobra.Command, args []string) (client.Request, error) {
	req := client.Request{Method: r.method, Query: url.Values{}, Header: http.Header{}}
	schema, table, ok := strings.Cut(args[0], ".")
	if !ok {
		schema, table = "", args[0]
	}

	req.Path = url.PathEscape(table)
	if schema != "" {
		req.Header.Set("Accept-Profile", schema)
		req.Header.Set("Content-Profile", schema)
	}

	for _, filter := range args[1:] {
		column, condition, ok := strings.Cut(filter, "=")
		if !ok {
			return req, fmt.Errorf("%w: the filter %q is not column=operator.value, such as id=eq.1", errUsage, filter)
		}

		req.Query.Add(column, condition)
	}

	if all, _ := cmd.Flags().GetBool("all"); r.method != http.MethodGet && r.method != http.MethodPost &&
		len(args) < 2 && !all {
		return req, fmt.Errorf("%w: %s needs a filter, or --all for all rows", errUsage, pathOf(cmd))
	}

	if r.method == http.MethodGet {
		return req, r.addReadOptions(cmd, req.Query)
	}

	prefer := "count=exact"
	if asJSON(cmd) {
		prefer += ", return=representation"
	}

	req.Header.Set("Prefer", prefer)
	if r.method == http.MethodDelete {
		return req, nil
	}

	text, err := r.input(cmd)
	if err != nil {
		return req, err
	}

	kind := typeOf(text)
	if kind == csvType {
		if err := checkCSV(text); err != nil {
			return req, err
		}
	}

	req.Body = bytes.NewReader(text)
	req.Header.Set("Content-Type", kind)

	return req, nil
}

// checkCSV fails for a line with more or fewer values than the header. The rows API drops surplus
// ones, as PostgREST does. It reports other errors in the text itself.
func checkCSV(text []byte) error {
	lines := csv.NewReader(bytes.NewReader(text))
	lines.ReuseRecord = true
	for {
		row, err := lines.Read()
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := lines.FieldPos(0)
			noun := "values"
			if len(row) == 1 {
				noun = "value"
			}

			return fmt.Errorf("line %d has %d %s, the header %d", line, len(row), noun, lines.FieldsPerRecord)
		}
		if err != nil {
			return nil
		}
	}
}

func (r *rowsCommand) addReadOptions(cmd *cobra.Command, query url.Values) error {
	if limit, _ := cmd.Flags().GetInt("limit"); limit < 1 {
		return fmt.Errorf("%w: --limit must be at least 1", errUsage)
	}

	for _, name := range []string{"select", "order", "limit", "offset"} {
		if all, _ := cmd.Flags().GetBool("all"); all && name == "limit" {
			continue
		}
		if text := cmd.Flags().Lookup(name).Value.String(); text != "" && text != "0" {
			query.Set(name, text)
		}
	}

	return nil
}

// input returns the rows to insert, or the changes.
func (r *rowsCommand) input(cmd *cobra.Command) ([]byte, error) {
	if cmd.Flags().Changed("data") {
		text, _ := cmd.Flags().GetString("data")
		if strings.TrimSpace(text) == "" {
			return nil, fmt.Errorf("%w: --data must not be empty", errUsage)
		}

		return []byte(text), nil
	}

	file, _ := cmd.Flags().GetString("file")
	if _, ok := terminal(cmd.InOrStdin()); ok && file == "" {
		return nil, fmt.Errorf("%w: give the rows by --data, by --file or on standard input", errUsage)
	}
	if file == "" {
		file = "-"
	}

	return readInput(cmd, file)
}

// typeOf returns the media type of rows: JSON begins with a bracket, CSV with a name.
func typeOf(text []byte) string {
	if start := bytes.TrimSpace(text); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return "application/json"
	}
	return csvType
}

func (r *rowsCommand) print(cmd *cobra.Command, res *http.Response, text []byte) error {
	if asJSON(cmd) {
		return printIndented(cmd.OutOrStdout(), text)
	}

	if r.method != http.MethodGet {
		_, count, _ := strings.Cut(res.Header.Get("Content-Range"), "/")
		noun := "rows"
		if count == "1" {
			noun = "row"
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "%s %s %s.\n", count, noun, r.verb)

		return nil
	}

	content, err := decode(text)
	if err != nil {
		return err
	}

	items, _ := content.([]any)
	if len(items) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "There are no rows.")
		return nil
	}

	var g grid
	for i, item := range items {
		o, _ := item.(record)
		var row []string
		for n, m := range o {
			_, number := m.value.(json.Number)
			if i == 0 {
				g.heads, g.numbers = append(g.heads, sanitize(m.name)), append(g.numbers, true)
			}

			g.numbers[n] = g.numbers[n] && (number || m.value == nil)
			row = append(row, sqlText(m.value))
		}

		g.rows = append(g.rows, row)
	}

	g.lined = true
	if err := g.print(cmd.OutOrStdout()); err != nil {
		return err
	}

	all, _ := cmd.Flags().GetBool("all")
	if limit, _ := cmd.Flags().GetInt("limit"); !all && len(items) == limit {
		rows := "row"
		if limit > 1 {
			rows = fmt.Sprintf("%d rows", limit)
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "\nThe first %s; all: --all\n", rows)
	}

	return nil
}

// asHeader is the header of the rows API that names whom a member acts as.
const asHeader = "X-Socle-As"

// rowsCredentials returns the token for a request to the rows API, and sets the header that names
// whom the caller acts as. The token is the caller's own, with three exceptions: the API key of the
// environment, and what the header can't name. That is an end user's address, which a token for
// that user stands for, and the role authenticated, in a token signed with the project's secret.
func (e environment) rowsCredentials(cmd *cobra.Command, c *client.Client, header http.Header) (string, error) {
	who, _ := cmd.Flags().GetString("as")
	role, _ := cmd.Flags().GetString("role")
	who = strings.TrimPrefix(who, "user:")
	id, notUUID := uuid.Parse(who)
	switch {
	case who == "anon":
		header.Set(asHeader, who)
	case who != "" && notUUID != nil:
		return endUserToken(cmd.Context(), c, who)
	case who != "":
		header.Set(asHeader, "user:"+id.String())
	case e.value(config.ClientKey) != "":
		return e.value(config.ClientKey), nil
	case role == "authenticated":
		return signRoleToken(cmd.Context(), c, role)
	default:
		header.Set(asHeader, role)
	}

	return c.Token, nil
}

// signRoleToken returns a token for a role, signed with the project's secret.
func signRoleToken(ctx context.Context, c *client.Client, role string) (string, error) {
	secret, err := jwtSecret(ctx, c)
	if err != nil {
		return "", err
	}

	claims, err := json.Marshal(map[string]any{"role": role, "exp": time.Now().Add(tokenLifetime).Unix()})
	if err != nil {
		return "", err
	}

	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))

	return text + "." + enc.EncodeToString(mac.Sum(nil)), nil
}

// endUserToken returns a token with which an end user's rows can be read.
func endUserToken(ctx context.Context, c *client.Client, who string) (string, error) {
	reply, err := c.Do(ctx, client.Request{Method: http.MethodPost, Body: map[string]string{"user": who},
		Path: "/projects/" + url.PathEscape(c.Project) + "/end-user-tokens"})
	if err != nil {
		return "", err
	}

	var m struct{ Token string }
	return m.Token, json.Unmarshal(reply.Metadata, &m)
}

// jwtSecret returns the secret that signs tokens for the rows API.
func jwtSecret(ctx context.Context, c *client.Client) (string, error) {
	reply, err := c.Do(ctx, client.Request{
		Method: http.MethodGet,
		Path:   "/projects/" + url.PathEscape(c.Project) + "/jwt-secret",
	})
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusForbidden {
		f := newFailure(e)
		f.hints = append(f.hints, "Or set "+config.ClientKey+" to an API key of the project.")

		return "", f
	}
	if err != nil {
		return "", err
	}

	var s struct{ Secret string }
	return s.Secret, reply.Into(&s)
}
