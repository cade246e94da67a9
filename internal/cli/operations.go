package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// addRemote adds a command for every operation of the platform API: socle <noun> <verb>. Names,
// arguments, flags and help come from the OpenAPI document. With a noun it adds no others than its
// commands, which is faster.
func addRemote(root *cobra.Command, e environment, noun string) error {
	d, err := describe()
	if err != nil {
		return err
	}

	for _, o := range d.operations(noun) {
		switch {
		case o.ID == "runSQL":
			addSQL(groupOf(root, "sql"), d, o, e)
			continue
		case handWritten[o.ID] != "":
			continue
		}

		verb, name := words(o.ID)
		if c := findCommand(root, name); c != nil && !c.HasSubCommands() {
			return fmt.Errorf("socle %s is already a command and cannot group the operation %s", name, o.ID)
		}

		group := groupOf(root, name)
		if inner, last, ok := strings.Cut(verb, " "); ok { // functions secrets list
			group, verb = groupOf(group, inner), last
		}
		group.AddCommand(newRemote(d, o, verb, e).command())
	}

	for name, add := range map[string]func(group *cobra.Command){
		"rows":       func(group *cobra.Command) { addRows(group, d, e) },
		"db":         func(group *cobra.Command) { addDatabase(group, e) },
		"end-users":  func(group *cobra.Command) { group.AddCommand(newEndUserImport(d, e)) },
		"migrations": func(group *cobra.Command) { addMigrations(group, d, e) },
		"functions":  func(group *cobra.Command) { addFunctions(group, d, e) },
	} {
		if noun == "" || name == noun {
			add(groupOf(root, name))
		}
	}

	return nil
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
	members  []string // members of the body, sorted
	list     string   // member with several items, if the body may also be one item; "": none
	project  bool     // --project fills a path parameter
	document *description
	flags    map[string]*value // by parameter or member
	columns  columnFlag
}

func newRemote(d *description, o operation, verb string, e environment) *remote {
	r := &remote{operation: o, e: e, verb: verb, document: d, flags: map[string]*value{}}
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

	r.mergeForms()
	r.body.Properties = maps.Clone(r.body.Properties) // the document is shared
	delete(r.body.Properties, "projectUUID")
	r.members = slices.Sorted(maps.Keys(r.body.Properties))

	return r
}

// mergeForms makes one schema of a body that is either an item or a list of items: the members of
// the item, and the list.
func (r *remote) mergeForms() {
	if len(r.body.OneOf) != 2 {
		return
	}

	item, list := r.document.resolve(r.body.OneOf[0]), r.document.resolve(r.body.OneOf[1])
	r.body = schema{Properties: maps.Clone(item.Properties), Required: item.Required}
	for name, member := range list.Properties {
		if _, common := item.Properties[name]; !common {
			member.Description = strings.TrimSpace(member.Description + " Several at once.")
			r.body.Properties[name], r.list = member, name
		}
	}
}

func (r *remote) command() *cobra.Command {
	use := r.verb
	for _, a := range r.args {
		use += " " + argument(a)
	}

	cmd := &cobra.Command{
		Use:               use,
		Short:             r.Summary,
		Long:              strings.TrimSpace(r.Summary + ".\n\n" + r.Description),
		Args:              r.checkArgs,
		PreRunE:           r.checkRequired,
		RunE:              r.run,
		ValidArgsFunction: r.completeArg,
	}

	r.addFlags(cmd)
	cmd.Long += r.jsonForms()
	verb, noun := words(r.ID)
	cmd.Example = r.example("socle " + noun + " " + verb)
	r.e.addConnectionFlags(cmd)

	return cmd
}

// argument returns how help and messages call a path parameter.
func argument(parameter string) string {
	words := split(strings.TrimSuffix(parameter, "UUID"))
	if words[0] == "full" {
		words = words[1:]
	}

	return strings.ToUpper(strings.Join(words, "-"))
}

func (r *remote) checkArgs(cmd *cobra.Command, args []string) error {
	if len(args) == len(r.args) {
		return noEmptyArg(cmd, args)
	}

	hint := ""
	if len(args) > len(r.args) && slices.Contains(r.members, "name") {
		hint = fmt.Sprintf("; did you mean --name %s?", args[len(r.args)])
	}

	return wrongArgs(cmd, len(r.args), args, hint)
}

// noEmptyArg refuses an empty argument, such as an unset variable of a shell: without its last
// segment, a path can be that of another operation.
func noEmptyArg(cmd *cobra.Command, args []string) error {
	i := slices.Index(args, "")
	if i < 0 {
		return nil
	}

	_, names, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%w: %s: %s must not be empty", errUsage, pathOf(cmd), strings.Fields(names)[i])
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return wrongArgs(cmd, n, args, "")
		}
		return nil
	}
}

// pathOf returns the words of a command, without the program.
func pathOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "socle ") }

// wrongArgs is the usage error of a command that takes n arguments.
func wrongArgs(cmd *cobra.Command, n int, args []string, hint string) error {
	problem := fmt.Sprintf("takes %d arguments, got %d", n, len(args))
	switch {
	case n == 0:
		problem = fmt.Sprintf("takes no argument, got %q", args[0])
	case len(args) < n:
		_, names, _ := strings.Cut(cmd.Use, " ")
		problem = "needs " + strings.Join(strings.Fields(names)[len(args):], " and ")
	}

	return fmt.Errorf("%w: %s %s%s\nusage: %s", errUsage, pathOf(cmd), problem, hint, cmd.UseLine())
}

func (r *remote) run(cmd *cobra.Command, args []string) error {
	c, err := r.e.client(cmd)
	if err != nil {
		return err
	}

	req, err := r.request(cmd, c, args)
	if err != nil {
		return err
	}

	if err := r.confirm(cmd, args); err != nil {
		return err
	}

	if r.media == "application/json" {
		if req.Body, err = r.json(cmd, c); err != nil {
			return err
		}
	}

	if !r.takes("header", "X-Project") {
		c.Project = ""
	}

	switch {
	case r.media == "multipart/form-data":
		return r.upload(cmd, c, req)
	case r.media == rawMedia:
		return r.send(cmd, c, req)
	case r.answersFile():
		return r.explain(cmd, download(cmd, c, req))
	}

	if yes, _ := cmd.Flags().GetBool("follow"); yes {
		return r.follow(cmd, c, req)
	}

	reply, err := r.do(cmd, c, req)
	if err == nil {
		reply, err = r.wait(cmd, c, req, reply)
	}
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusNotFound {
		err = r.explainMissing(cmd, c, args, err)
	}

	return r.show(cmd, c, reply, err)
}

// explainMissing adds to the failure of a request for something that does not exist the nearest
// name, or the command that makes it.
func (r *remote) explainMissing(cmd *cobra.Command, c *client.Client, args []string, err error) error {
	err = explain(err)
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}

	_, name := words(r.ID)
	if len(r.args) == 0 {
		if n := findNoun(name); n != nil && r.document.makes(r.Path) {
			f.hints = append(f.hints, "There is none yet. Make one: "+n.example)
		}

		return err
	}

	finder := finder{r.document, c}
	for i, argument := range r.args {
		if s := r.parameter(argument).Schema; s.Format == "uuid" || i >= len(args) {
			continue
		}

		template, _, _ := strings.Cut(r.Path, "/{"+argument+"}")
		path, pathErr := r.path(cmd.Context(), finder, args[:i])
		o, isListed := r.document.lister(template)
		if pathErr != nil || !isListed {
			continue
		}

		items, listErr := finder.list(cmd.Context(), o, path, "")
		exists := slices.ContainsFunc(items, func(o record) bool { return slices.Contains(namesOf(o), args[i]) })
		if listErr != nil || exists {
			continue
		}

		if near := nearestName(args[i], items); near != "" {
			f.hints = append(f.hints, fmt.Sprintf("Did you mean %q?", near))
		}

		return err
	}

	return err
}

// makes reports whether an operation makes or changes the only thing at a path.
func (d *description) makes(path string) bool {
	return slices.ContainsFunc(d.Operations, func(s stored) bool {
		return s.Path == path && (s.Method == http.MethodPut || s.Method == http.MethodPost)
	})
}

// request returns the request without its body. It resolves names to UUIDs.
func (r *remote) request(cmd *cobra.Command, c *client.Client, args []string) (client.Request, error) {
	req := client.Request{Method: r.Method, Query: url.Values{}, Header: http.Header{}}
	names := finder{r.document, c}

	if r.project || r.takes("header", "X-Project") {
		if err := names.selectProject(cmd.Context()); err != nil {
			return req, err
		}
	}

	var err error
	if req.Path, err = r.path(cmd.Context(), names, args); err != nil {
		return req, err
	}

	for _, p := range r.queries {
		v := r.flags[p.Name]
		if !v.given() {
			continue
		}

		text, err := names.find(cmd.Context(), stem(p.Name), p.Schema, v.String())
		if err != nil {
			return req, err
		}

		req.Query.Set(p.Name, text)
	}

	if r.secret != "" {
		text, err := r.e.passphrase(cmd)
		if err != nil {
			return req, err
		}

		if text != "" {
			req.Header.Set(r.secret, text)
		}
	}

	return req, nil
}

// path fills the arguments into the path, as far as there are any.
func (r *remote) path(ctx context.Context, names finder, args []string) (string, error) {
	path, template := "", ""
	for _, part := range strings.Split(r.Path, "/")[1:] {
		name := strings.Trim(part, "{}")
		filled := part
		switch {
		case name == part:
		case name == "projectUUID" && r.project:
			filled = url.PathEscape(names.client.Project)
		case len(args) == 0:
			return path, nil
		case name == "fullFileName": // may contain slashes
			filled, args = (&url.URL{Path: args[0]}).EscapedPath(), args[1:]
		default:
			id, err := names.findIn(ctx, template, path, r.parameter(name), args[0])
			if err != nil {
				return "", err
			}

			filled, args = url.PathEscape(id), args[1:]
		}

		path, template = path+"/"+filled, template+"/"+part
	}

	return path, nil
}

// parameter returns a path parameter.
func (r *remote) parameter(name string) parameter {
	i := slices.IndexFunc(r.Parameters, func(p parameter) bool { return p.In == "path" && p.Name == name })
	if i < 0 {
		return parameter{Name: name}
	}

	return r.Parameters[i]
}

// show prints a response, as JSON or for people.
func (r *remote) show(cmd *cobra.Command, c *client.Client, reply *client.Reply, err error) error {
	if err != nil {
		return r.explain(cmd, err)
	}

	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), reply)
	}

	p, err := newReply(reply)
	if err != nil {
		return err
	}

	if l, ok := lists[r.ID]; ok {
		p.list = &l
	}

	p.addDetails()
	p.addNames()

	if r.ID == "createEndUser" && !cmd.Flags().Changed("password-file") && !cmd.Flags().Changed("body") {
		defer fmt.Fprintln(cmd.ErrOrStderr(), "The user has no password: a link or code by mail lets them in "+
			"(signInWithOtp, resetPasswordForEmail). With one: --password-file -")
	}

	return p.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), r.subject())
}

// subject is the plural noun of the things that the operation lists.
func (r *remote) subject() string {
	return strings.ReplaceAll(plural(strings.Join(split(r.ID)[1:], "-")), "-", " ")
}

func asJSON(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("json")
	return yes
}
