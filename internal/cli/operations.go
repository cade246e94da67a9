package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"socle/client"
)

// addRemote adds a command for every operation of the platform API: socle <noun> <verb>. Names,
// arguments, flags and help come from the OpenAPI document.
func addRemote(root *cobra.Command, e environment) error {
	d, err := describe()
	if err != nil {
		return err
	}

	for _, o := range d.operations() {
		if o.ID == "login" || o.ID == "logout" { // own commands, which also manage the stored session
			continue
		}

		verb, noun := o.words()
		if noun == "" {
			noun = "users"
		}

		singular := strings.Join(split(o.ID)[1:], "-")
		group := findCommand(root, noun)
		if group == nil {
			group = &cobra.Command{Use: noun,
				Long: "Manage " + strings.ReplaceAll(noun, "-", " ") + ".", Args: noCommand,
				RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }, GroupID: remoteGroup}
			root.AddCommand(group)
		} else if !group.HasSubCommands() {
			return fmt.Errorf("socle %s is already a command and cannot group the operation %s", noun, o.ID)
		}

		// The singular works too: socle backup create.
		if singular != noun && singular != "" && !group.HasAlias(singular) && findCommand(root, singular) == nil {
			group.Aliases = append(group.Aliases, singular)
		}

		group.AddCommand(newRemote(d, o, verb, e).command())
		group.Short = strings.Join(verbs(group), ", ")
	}

	return nil
}

const remoteGroup = "remote"

func verbs(group *cobra.Command) []string {
	var all []string
	for _, c := range group.Commands() { // sorted by name
		all = append(all, c.Name())
	}

	return all
}

func findCommand(parent *cobra.Command, name string) *cobra.Command {
	i := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return nil
	}

	return parent.Commands()[i]
}

// remote is the command of an operation.
type remote struct {
	operation
	e        environment
	verb     string
	args     []string // path parameters that are arguments
	queries  []parameter
	secret   string // header that carries a passphrase; "": none
	media    string
	body     schema
	members  []string // of the body, sorted
	project  bool     // --project fills a path parameter
	document *description
}

func newRemote(d *description, o operation, verb string, e environment) *remote {
	r := &remote{operation: o, e: e, verb: verb, document: d}
	for _, part := range strings.Split(o.Path, "/") {
		switch name := strings.Trim(part, "{}"); {
		case name == part:
		case name == "projectUUID" && strings.HasPrefix(o.Path, "/projects/{projectUUID}/"):
			r.project = true
		default:
			r.args = append(r.args, name)
		}
	}

	for _, p := range o.Parameters {
		switch {
		case p.In == "query":
			r.queries = append(r.queries, p)
		case p.In == "header" && p.Name == "X-Passphrase":
			r.secret = p.Name
		}
	}

	if r.media, r.body = d.body(o); r.media == rawMedia { // a file without a form
		r.body = schema{Properties: map[string]schema{"file": r.body}, Required: []string{"file"}}
	}

	r.body.Properties = maps.Clone(r.body.Properties) // the document is shared
	delete(r.body.Properties, "projectUUID")
	r.flatten()
	r.members = slices.Sorted(maps.Keys(r.body.Properties))

	return r
}

// flatten adds the fields of one item to a body that consists of a list of items, because such an
// operation accepts either.
func (r *remote) flatten() {
	if len(r.body.Properties) != 1 {
		return
	}

	for name, list := range r.body.Properties {
		if list.Items == nil || !r.document.resolve(*list.Items).is("object") {
			return
		}

		r.body.Properties = maps.Clone(r.document.resolve(*list.Items).Properties)
		list.Description = strings.TrimSpace(list.Description + " Several at once.")
		r.body.Properties[name], r.body.Required = list, nil
	}
}

func (r *remote) command() *cobra.Command {
	use := r.verb
	for _, a := range r.args {
		use += " " + strings.ToUpper(strings.Join(split(strings.TrimSuffix(a, "UUID")), "-"))
	}

	cmd := &cobra.Command{
		Use:   use,
		Short: r.Summary,
		Long:  strings.TrimSpace(r.Summary + ".\n\n" + r.Description),
		Args:  exactArgs(len(r.args)),
		RunE:  r.run,
	}

	flags := cmd.Flags()
	for _, p := range r.queries {
		flags.String(kebab(p.Name), "", usage(p.Description, p.Schema))
	}

	for _, name := range r.members {
		s := r.document.resolve(r.body.Properties[name])
		text := usage(s.Description, s)
		if slices.Contains(r.body.Required, name) {
			text = strings.TrimSpace(text + " (required)")
		}

		switch {
		case name == "passphrase":
			addPassphrase(cmd)
		case s.Format == "binary":
			flags.String(kebab(name), "", "path of the file, - for standard input")
		case s.is("array") && s.Items != nil && r.document.resolve(*s.Items).is("string"):
			flags.StringArray(kebab(name), nil, text+" (may be given more than once)")
		default:
			flags.String(kebab(name), "", text)
		}
	}

	if r.secret != "" {
		addPassphrase(cmd)
	}
	if r.media == "application/json" {
		flags.String("body", "", "file with the whole body as JSON, - for standard input")
	}
	if r.answersFile() {
		flags.StringP("output", "o", "-", "file to write to, - for standard output")
	}

	addConnectionFlags(cmd)
	return cmd
}

// usage returns the help of a flag: its description and its allowed values.
func usage(meaning string, s schema) string {
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}

		meaning = strings.TrimSpace(meaning + " One of " + strings.Join(values, ", ") + ".")
	}

	if s.is("object") || (s.is("array") && s.Items != nil && !s.Items.is("string")) {
		meaning = strings.TrimSpace(meaning + " As JSON.")
	}
	if s.Default != nil {
		meaning = strings.TrimSpace(fmt.Sprintf("%s (default %v)", meaning, s.Default))
	}

	return meaning
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%w: socle %s", errUsage, strings.TrimPrefix(cmd.UseLine(), "socle "))
		}
		return nil
	}
}

// errNoProject is the failure of a command that needs a project.
var errNoProject = fmt.Errorf("%w: no project selected; use --project, SOCLE_PROJECT or socle use", errUsage)

func (r *remote) run(cmd *cobra.Command, args []string) error {
	c, err := r.e.client(cmd)
	if err != nil {
		return err
	}

	req := client.Request{Method: r.Method, Query: url.Values{}, Header: http.Header{}}
	if req.Path, err = r.path(c.Project, args); err != nil {
		return err
	}

	for _, p := range r.queries {
		if f := cmd.Flags().Lookup(kebab(p.Name)); f.Changed {
			req.Query.Set(p.Name, f.Value.String())
		}
	}

	if r.secret != "" {
		if text, err := r.e.passphrase(cmd); err != nil {
			return err
		} else if text != "" {
			req.Header.Set(r.secret, text)
		}
	}

	if r.media == "multipart/form-data" {
		return r.upload(cmd, c, req)
	}
	if r.media == rawMedia {
		return r.send(cmd, c, req)
	}

	if r.media != "" {
		if req.Body, err = r.json(cmd); err != nil {
			return err
		}
	}

	if r.answersFile() {
		return download(cmd, c, req)
	}

	reply, err := c.Do(cmd.Context(), req)
	return r.show(cmd, reply, err)
}

// path fills the arguments into the path.
func (r *remote) path(project string, args []string) (string, error) {
	var parts []string
	for _, part := range strings.Split(r.Path, "/") {
		switch name := strings.Trim(part, "{}"); {
		case name == part:
		case name == "projectUUID" && r.project:
			if project == "" {
				return "", errNoProject
			}
			part = url.PathEscape(project)
		case name == "fullFileName": // may contain slashes
			part, args = (&url.URL{Path: args[0]}).EscapedPath(), args[1:]
		default:
			part, args = url.PathEscape(args[0]), args[1:]
		}

		parts = append(parts, part)
	}

	return strings.Join(parts, "/"), nil
}

// json builds the body from the file and the flags. A flag overrides the file.
func (r *remote) json(cmd *cobra.Command) (json.RawMessage, error) {
	body := map[string]json.RawMessage{}
	if name, _ := cmd.Flags().GetString("body"); name != "" {
		text, err := readInput(cmd, name)
		if err != nil {
			return nil, err
		}

		if err := json.Unmarshal(text, &body); err != nil {
			return nil, fmt.Errorf("%w: --body must be a JSON object", errUsage)
		}
	}

	for _, name := range r.members {
		if name == "passphrase" {
			text, err := r.e.passphrase(cmd)
			if err != nil {
				return nil, err
			}

			if text != "" {
				if body[name], err = json.Marshal(text); err != nil {
					return nil, err
				}
			}

			continue
		}

		f := cmd.Flags().Lookup(kebab(name))
		if !f.Changed {
			continue
		}

		value, err := r.value(cmd, name)
		if err != nil {
			return nil, err
		}

		body[name] = value
	}

	return json.Marshal(body)
}

// value returns a flag's value as JSON in the type of its field.
func (r *remote) value(cmd *cobra.Command, name string) (json.RawMessage, error) {
	s := r.document.resolve(r.body.Properties[name])

	if list, err := cmd.Flags().GetStringArray(kebab(name)); err == nil {
		return json.Marshal(list)
	}

	text := cmd.Flags().Lookup(kebab(name)).Value.String()
	if s.is("string") && (text != "null" || !s.is("null")) {
		return json.Marshal(text)
	}

	if !json.Valid([]byte(text)) {
		if s.Type == nil { // any type, a string too
			return json.Marshal(text)
		}
		return nil, fmt.Errorf("%w: --%s takes %s", errUsage, kebab(name), expectedType(s))
	}

	return json.RawMessage(text), nil
}

func expectedType(s schema) string {
	switch {
	case s.is("integer"):
		return "a whole number"
	case s.is("number"):
		return "a number"
	case s.is("boolean"):
		return "true or false"
	}

	return "JSON"
}

func readInput(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(name)
}

// show prints a response, as JSON or for people.
func (r *remote) show(cmd *cobra.Command, reply *client.Reply, err error) error {
	if err != nil {
		return explain(err)
	}

	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		return printJSON(cmd.OutOrStdout(), reply)
	}

	return printReply(cmd.OutOrStdout(), reply)
}

// explain adds the next step to a failure.
func explain(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}

	text := strings.ReplaceAll(e.Error(), "\n  ", "; ")
	switch {
	case e.Status == http.StatusUnauthorized && (e.Code == "invalid_token" || e.Code == "token_expired"):
		text += " Log in: socle login"
	case e.Code == "internal":
		text += " Request id: " + e.RequestID
	case e.Retry > 0:
		text += " Try again in " + strconv.Itoa(int(e.Retry.Seconds())) + " seconds."
	}

	return errors.New(text)
}
