package form

import (
	"maps"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// A field may have a name, which stands for its UUID in answers. Names are for HTML forms that are
// written by hand.

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,49}$`)

// validName reports whether a field may have a name. Names are no UUIDs, so that each answer key
// means one field.
func validName(name string) bool {
	_, err := uuid.Parse(name)
	return err != nil && namePattern.MatchString(name)
}

// nameTaken turns a unique violation on a field's name into Unprocessable on the member.
func nameTaken(err error, member string) error {
	if !pg.Violates(err, "fields_name_key") {
		return err
	}
	return fault.OnField(fault.Unprocessable, member, "already_exists", "is taken by another field").WithCause(err)
}

// checkHoneypot fails with Unprocessable on the member if a field has the honeypot's name, since
// its answers would be discarded.
func checkHoneypot(name, honeypot *string, member string) error {
	if name == nil || honeypot == nil || *name != *honeypot {
		return nil
	}
	return fault.OnField(fault.Unprocessable, member, "already_exists", "is the name of the honeypot")
}

// byUUID returns the answers with UUIDs instead of names as keys, and the replaced names by UUID.
// It reports fields that are answered twice.
func (d fieldSet) byUUID(in Answers) (answers Answers, names map[string]string, p problems) {
	answers, names = maps.Clone(in), map[string]string{}
	for _, f := range d.fields {
		if f.Name == nil {
			continue
		}

		value, ok := in[*f.Name]
		if !ok {
			continue
		}

		id := f.UUID.String()
		if _, twice := in[id]; twice {
			p.add("answers."+*f.Name, "repeated", "is answered twice, by name and by UUID")
		}

		delete(answers, *f.Name)
		answers[id], names[id] = value, *f.Name
	}

	return answers, names, p
}

// rename restores the field names that the client used in problems.
func (p problems) rename(names map[string]string) {
	for i, f := range p {
		if id, ok := strings.CutPrefix(f.Name, "answers."); ok && names[id] != "" {
			p[i].Name = "answers." + names[id]
		}
	}
}
