package submission

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/ratelimit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// opened is a project with an open form: a required text and two files.
type opened struct {
	*Service
	t       *testing.T
	project *projectdb.Project
	form    form.Form
	fields  []form.Field
}

func open(t *testing.T) opened {
	t.Helper()

	store, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })

	o := opened{Service: New(Config{Blobs: store, Attempts: ratelimit.Attempts{Off: true}}), t: t,
		project: projectdbtest.New(t)}
	user, id := projectdbtest.UUID(t), projectdbtest.UUID(t)
	if _, err := form.CreateForm(t.Context(), o.project, user, id, form.NewForm{Name: "Form"}); err != nil {
		t.Fatal(err)
	}

	var fields []form.FieldInput
	if err := json.Unmarshal([]byte(`[{"label": "Name", "name": "name", "type": "text", "is_required": true},
		{"label": "CV", "name": "cv", "type": "file"}, {"label": "Photo", "type": "file"}]`), &fields); err != nil {
		t.Fatal(err)
	}
	if o.fields, err = form.CreateFields(t.Context(), o.project, id, fields); err != nil {
		t.Fatal(err)
	}

	container, err := object.CreateContainer(t.Context(), o.project, actor.Member(user),
		object.NewContainer{Name: "answers"})
	if err != nil {
		t.Fatal(err)
	}

	var update form.FormUpdate
	if err := json.Unmarshal([]byte(`{"state": "open", "container_uuid": "`+container.UUID.String()+`"}`),
		&update); err != nil {
		t.Fatal(err)
	}
	if o.form, err = o.UpdateForm(t.Context(), o.project, user, id, update); err != nil {
		t.Fatal(err)
	}

	return o
}

// create sends a response with files, each a field and the name of the file.
func (o opened) create(answers form.Answers, files ...[2]string) error {
	o.t.Helper()

	next := func() (*File, error) {
		if len(files) == 0 {
			return nil, nil
		}

		f := files[0]
		files = files[1:]
		return &File{Field: f[0], Name: f[1], MimeType: "text/plain", Content: strings.NewReader(f[1])}, nil
	}

	_, err := o.Create(o.t.Context(), o.project, Response{Form: o.form.UUID, Answers: answers}, next)
	return err
}

// stored returns the number of complete responses and of files.
func (o opened) stored() (responses, files int64) {
	o.t.Helper()

	f, err := form.GetForm(o.t.Context(), o.project, o.form.UUID)
	if err != nil {
		o.t.Fatal(err)
	}

	usage, err := object.GetContainer(o.t.Context(), o.project, actor.Service(),
		object.ContainerRef{UUID: *o.form.ContainerUUID})
	if err != nil {
		o.t.Fatal(err)
	}

	return f.TotalResponses, usage.TotalFiles
}

func TestCreateWithFiles(t *testing.T) {
	t.Parallel()

	o := open(t)
	ann := func() form.Answers { return form.Answers{"name": jsontext.Value(`"Ann"`)} }
	cv := o.fields[1].UUID.String()
	long := strings.Repeat("ä", 100)
	for name, c := range map[string]struct {
		answers form.Answers
		files   [][2]string
		field   string
	}{
		"invalid answer": {form.Answers{}, [][2]string{{"cv", "a.txt"}}, "answers." + o.fields[0].UUID.String()},
		"unknown field":  {ann(), [][2]string{{"cv", "a.txt"}, {"x", "b.txt"}}, "answers.x"},
		"long name":      {ann(), [][2]string{{long, "b.txt"}}, "answers." + strings.Repeat("ä", 32) + "…"},
		"text field":     {ann(), [][2]string{{"name", "b.txt"}}, "answers.name"},
		"twice":          {ann(), [][2]string{{"cv", "a.txt"}, {cv, "b.txt"}}, "answers." + cv},
		"file's name":    {ann(), [][2]string{{"cv", "../a"}}, "answers.cv"},
		"endless":        {ann(), make([][2]string, 30), ""},
	} {
		for i := range c.files {
			if c.files[i][0] == "" {
				c.files[i][0] = "cv"
			}
		}

		err := o.create(c.answers, c.files...)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || (c.field != "" && (len(e.Fields) != 1 || e.Fields[0].Name != c.field)) {
			t.Errorf("%s: got %v, want a failure on %q", name, err, c.field)
		}
	}

	if responses, files := o.stored(); responses != 0 || files != 0 {
		t.Errorf("got %d responses and %d files of failures, want none", responses, files)
	}

	if err := o.create(ann(), [2]string{"cv", "a.txt"}, [2]string{o.fields[2].UUID.String(), ""}); err != nil {
		t.Fatal(err)
	}
	if responses, files := o.stored(); responses != 1 || files != 1 {
		t.Errorf("got %d responses and %d files, want 1 and 1", responses, files)
	}
}

func TestPartialResponse(t *testing.T) {
	t.Parallel()

	o := open(t)
	response := Response{Form: o.form.UUID, Answers: form.Answers{}}
	receipt, token, err := o.Start(t.Context(), o.project, response)
	if err != nil || receipt.State != "partial" {
		t.Fatal(receipt, err)
	}

	if _, err := o.Continue(t.Context(), o.project, receipt.UUID, token, response,
		true); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("got %v without the required answer", err)
	}

	response.Answers = form.Answers{"name": jsontext.Value(`"Ann"`)}
	if _, err := o.Continue(t.Context(), o.project, receipt.UUID, "wrong", response,
		true); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v with a wrong token", err)
	}
	if receipt, err = o.Continue(t.Context(), o.project, receipt.UUID, token, response, true); err != nil ||
		receipt.State != "complete" || receipt.Notify {
		t.Errorf("got %+v, %v", receipt, err)
	}
}

// TestFieldsChange changes a form behind the back of a service that has cached its fields.
func TestFieldsChange(t *testing.T) {
	t.Parallel()

	o := open(t)
	send := func(answers string) error {
		t.Helper()

		in := form.Answers{}
		if err := json.Unmarshal([]byte(answers), &in); err != nil {
			t.Fatal(err)
		}

		_, err := o.Create(t.Context(), o.project, Response{Form: o.form.UUID, Answers: in}, nil)
		return err
	}
	update := func(text string) {
		t.Helper()

		var u form.FormUpdate
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		if _, err := form.UpdateForm(t.Context(), o.project, projectdbtest.UUID(t), o.form.UUID, u); err != nil {
			t.Fatal(err)
		}
	}

	for range 3 { // stores the version, caches the fields, uses them
		if err := send(`{"name": "Emma"}`); err != nil {
			t.Fatal(err)
		}
	}

	if err := send(`{"age": "7"}`); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("without the name: got %v, want Unprocessable", err)
	}

	var more []form.FieldInput
	if err := json.Unmarshal([]byte(`[{"label": "Age", "name": "age", "type": "text", "is_required": true}]`),
		&more); err != nil {
		t.Fatal(err)
	}
	if _, err := form.CreateFields(t.Context(), o.project, o.form.UUID, more); err != nil {
		t.Fatal(err)
	}

	if err := send(`{"name": "Emma"}`); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("without a new required field: got %v, want Unprocessable", err)
	}
	for range 3 {
		if err := send(`{"name": "Emma", "age": "7"}`); err != nil {
			t.Errorf("with the new field: got %v, want no error", err)
		}
	}

	update(`{"honeypot": "website"}`)

	if err := send(`{"name": "Robot", "age": "7", "website": "x"}`); err != nil {
		t.Errorf("honeypot: got %v, want no error", err)
	}

	update(`{"max_responses": 7}`)

	if err := send(`{"name": "Last", "age": "7"}`); err != nil {
		t.Errorf("last response: got %v, want no error", err)
	}
	if err := send(`{"name": "Late", "age": "7"}`); !fault.Is(err, fault.Conflict) {
		t.Errorf("full form: got %v, want Conflict", err)
	}

	f, err := form.GetForm(t.Context(), o.project, o.form.UUID)
	if err != nil || f.TotalResponses != 7 || f.BlockedResponses != 1 {
		t.Errorf("got %d responses and %d blocked (%v), want 7 and 1", f.TotalResponses, f.BlockedResponses, err)
	}
}
