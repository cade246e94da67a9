package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/socle-dev/socle/client"
)

// value is the value of a flag, in the type of a parameter or member of the document.
type value struct {
	schema schema
	kind   string   // pflag's name of the type
	texts  []string // as given; more than one for a list only
}

// Kinds of values that are treated in a way of their own.
const (
	kindBool = "bool"
	kindList = "strings"
	kindJSON = "json"
	kindRole = "role"
	kindSize = "size"
)

func newValue(d *description, s schema) *value {
	v := &value{schema: s}
	switch {
	case s.is("array") && s.Items != nil && d.resolve(*s.Items).is("string"):
		v.kind = kindList
	case s.is("boolean"):
		v.kind = kindBool
	case s.is("string"):
		v.kind = "string"
	case s.is("integer"):
		v.kind = "int"
	case s.is("number"):
		v.kind = "number"
	default:
		v.kind = kindJSON
	}

	return v
}

// exclude refuses more than one of the flags at once.
func exclude(cmd *cobra.Command, names ...string) {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		var given []string
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}

		if len(given) > 1 {
			return fmt.Errorf("%w: %s: %s exclude each other", errUsage, pathOf(cmd), strings.Join(given, " and "))
		}
		if next == nil {
			return nil
		}

		return next(cmd, args)
	}
}

// String returns the text that was given last.
func (v *value) String() string {
	if v == nil || !v.given() {
		return ""
	}
	return v.texts[len(v.texts)-1]
}

// Type returns the name of the type in help.
func (v *value) Type() string { return v.kind }

func (v *value) given() bool { return len(v.texts) > 0 }

// Set accepts a text of the type.
func (v *value) Set(text string) error {
	if err := v.check(text); err != nil {
		return err
	}

	if v.kind != kindList {
		v.texts = nil
	}

	v.texts = append(v.texts, text)
	return nil
}

func (v *value) check(text string) error {
	if text == "null" && v.schema.is("null") {
		return nil
	}

	switch v.kind {
	case kindBool:
		if text != "true" && text != "false" {
			return errors.New("takes true or false")
		}
	case kindSize:
		if _, err := parseSize(text); err != nil {
			return err
		}
	case "int":
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return errors.New("takes a whole number")
		}
	case "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return errors.New("takes a number")
		}
	case kindRole:
		if _, err := roleNumber(text, v.schema.Minimum); err != nil {
			return err
		}
	case kindJSON:
		if v.schema.Type != nil && !json.Valid([]byte(text)) {
			return errors.New("takes JSON; --help shows its form")
		}
	}

	return nil
}

// json returns the value as JSON.
func (v *value) json() (json.RawMessage, error) {
	text := v.String()
	switch {
	case v.kind == kindList:
		return json.Marshal(v.texts)
	case v.kind == kindSize && text != "null":
		n, err := parseSize(text)
		if err != nil {
			return nil, err
		}
		return json.Marshal(n)
	case v.kind == kindRole:
		number, err := roleNumber(text, v.schema.Minimum)
		return json.RawMessage(number), err
	case text == "null" && v.schema.is("null"):
		return json.RawMessage(text), nil
	case v.kind == "string", !json.Valid([]byte(text)): // any type, a string too
		return json.Marshal(text)
	}

	return json.RawMessage(text), nil
}

// addFlags adds a flag for each query parameter and each member of the body.
func (r *remote) addFlags(cmd *cobra.Command) {
	r.acceptLongNames(cmd)

	for _, p := range r.queries {
		r.addFlag(cmd, p.Name, p.Description, p.Schema, p.Required)
	}

	for _, name := range r.members {
		s := r.document.resolve(r.body.Properties[name])
		required := slices.Contains(r.body.Required, name)
		switch {
		case name == "passphrase":
			addPassphrase(cmd)
		case slices.Contains(secretMembers, name):
			addSecret(cmd, name, required)
		case s.Format == "binary":
			r.addFlag(cmd, name, "path of the file, - for standard input", schema{Type: "string"}, required)
		default:
			r.addFlag(cmd, name, s.Description, s, required)
		}
	}

	if r.secret != "" {
		addPassphrase(cmd)
	}
	if r.hasColumns() {
		cmd.Flags().Var(&r.columns, "column", "column as in SQL: 'id bigint primary key'. Repeat it for several.")
	}

	flags := cmd.Flags()
	if r.media == "application/json" && len(r.members) > 0 {
		flags.String("body", "", "file with the whole body as JSON, - for standard input")
	}
	if r.answersFile() {
		flags.StringP("output", "o", "-", "file to write to, - for standard output")
	}
	if r.pages() {
		flags.Bool("all", false, "list all pages")
	}
	if r.destructive() {
		flags.BoolP("yes", "y", false, "do not ask for confirmation")
	}
	if r.ID == "listRequests" {
		flags.Bool("follow", false, "print further requests as they come")
	}
	if waitPaths[r.ID] != "" {
		flags.Bool("wait", false, "wait until the work is done, and fail if it fails")
	}
}

func (r *remote) addFlag(cmd *cobra.Command, name, meaning string, s schema, required bool) {
	s = r.document.resolve(s)
	v := newValue(r.document, s)
	if isRole(name) {
		v.kind, meaning = kindRole, "One of "+strings.Join(roleNames(s.Minimum), ", ")+"."
	}
	if v.kind == "int" && isSize(name) {
		v.kind, meaning = kindSize, strings.TrimSpace(meaning+" Bytes, or with a unit: 500MB, 10GB.")
	}
	r.flags[name] = v

	flag := cmd.Flags().VarPF(v, r.flagName(name), "", usage(meaning, v, required))
	if v.kind == kindBool {
		flag.NoOptDefVal = "true"
	}
	if required {
		_ = cmd.MarkFlagRequired(flag.Name) // the flag exists
	}

	r.completeFlag(cmd, flag, name, s)
}

// usage returns the help of a flag: its meaning and its allowed values.
func usage(meaning string, v *value, required bool) string {
	meaning = strings.ReplaceAll(meaning, "`", "") // pflag takes a quoted word for the type
	if len(v.schema.Enum) > 0 {
		var values []string
		for _, e := range v.schema.Enum {
			values = append(values, fmt.Sprint(e))
		}

		meaning += " One of " + strings.Join(values, ", ") + "."
	}

	switch {
	case v.kind == kindList:
		meaning += " Repeat it for several."
	case required:
		meaning += " (required)"
	case v.schema.Default != nil:
		meaning += fmt.Sprintf(" (default %v)", v.schema.Default)
	}

	return strings.TrimSpace(meaning)
}

// checkRequired demands the required flags. --body, or the list of several items, takes their
// place.
func (r *remote) checkRequired(cmd *cobra.Command, args []string) error {
	body := cmd.Flags().Lookup("body")
	if columns := cmd.Flags().Lookup("columns"); len(r.columns) > 0 && r.list == "" {
		delete(columns.Annotations, cobra.BashCompOneRequiredFlag)
	}

	several := r.list != "" && (len(r.columns) > 0 || r.flags[r.list].given())
	if several || (body != nil && body.Changed) {
		lift(cmd)
	}

	return checkRequired(cmd, args)
}

// checkRequired demands the required flags, in better words than cobra.
func checkRequired(cmd *cobra.Command, _ []string) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})

	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %s is required", errUsage, missing[0])
	}

	return fmt.Errorf("%w: %s are required", errUsage, strings.Join(missing, " and "))
}

// lift lets all flags be optional.
func lift(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { delete(f.Annotations, cobra.BashCompOneRequiredFlag) })
}

// json builds the body from the file and the flags. A flag overrides the file.
func (r *remote) json(cmd *cobra.Command, c *client.Client) (json.RawMessage, error) {
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
		text, err := r.member(cmd, c, name, body[name] != nil)
		if err != nil {
			return nil, err
		}

		if text != nil {
			body[name] = text
		}
	}

	if len(r.columns) > 0 {
		if body["columns"] != nil {
			return nil, fmt.Errorf("%w: --column and --columns exclude each other", errUsage)
		}

		columns, err := json.Marshal(r.columns)
		if err != nil {
			return nil, err
		}

		body["columns"] = columns
	}

	return json.Marshal(body)
}

// member returns a member of the body; nil if it is not given.
func (r *remote) member(cmd *cobra.Command, c *client.Client, name string, inFile bool) (json.RawMessage, error) {
	var secret string
	var err error
	switch v := r.flags[name]; {
	case name == "passphrase":
		secret, err = r.e.passphrase(cmd)
	case slices.Contains(secretMembers, name):
		secret, err = r.readSecret(cmd, name, inFile)
	case !v.given():
		return nil, nil
	case v.kind != "string" && v.kind != kindList:
		return v.json()
	default:
		return r.named(cmd, c, name, v)
	}

	if err != nil || secret == "" {
		return nil, err
	}

	return json.Marshal(secret)
}

// named returns the JSON of a text, or of several. Names in place of UUIDs are resolved.
func (r *remote) named(cmd *cobra.Command, c *client.Client, name string, v *value) (json.RawMessage, error) {
	names := finder{r.document, c}
	s := v.schema
	if s.Items != nil {
		s = r.document.resolve(*s.Items)
	}

	for i, text := range v.texts {
		id, err := names.find(cmd.Context(), stem(name), s, text)
		if err != nil {
			return nil, err
		}

		v.texts[i] = id
	}

	return v.json()
}

func readInput(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(canceledReader{cmd.Context(), cmd.InOrStdin()})
	}
	return os.ReadFile(name)
}
